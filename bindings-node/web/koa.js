// Middleware for Koa.
//
//     app.use(throttle('100/s'));
//
// All workers of the application count together, without being told. docs/node.md has the options;
// functions get the context.
'use strict';

const { withTools, write } = require('./connect.js');
const { Gate } = require('./gate.js');
const { closing, hold, refundAfter, slow } = require('./hold.js');
const { gather, readOptions } = require('./options.js');
const { nodeReader, toPaths } = require('./reader.js');
const { refusalFields, toRefusal } = require('./refusal.js');

/** @import { Reader } from './gate.js' */
/** @import { Verdict } from './verdict.js' */

/** @type {Reader} */
const reader = {
  method: (context) => context.method,
  ignoresCase: true, // as its usual router does
  paths: (context) => toPaths(context.originalUrl ?? context.url),
  header: (context, name) => nodeReader.header(context.req, name),
  peer: (context) => context.req.socket?.remoteAddress,
  // With app.proxy, Koa takes the leftmost entry of its header.
  client: (context) => (context.app?.proxy ? context.ip : context.req.socket?.remoteAddress),
  isGone: (context) => nodeReader.isGone(context.req),
  forwardedFor: (context) => nodeReader.forwardedFor(context.req),
  trustProxy(context) {
    if (!context.app?.proxy || context.app.maxIpsCount > 0) return undefined;
    return (
      "app.proxy is set without app.maxIpsCount, so the client's address is what the client says it " +
      'is: set that to the number of proxies, or set trustedProxies'
    );
  },
};

/**
 * @param {unknown} source
 * @param {unknown} [options]
 */
function throttle(source, options) {
  const gate = new Gate(readOptions(gather(source, options)), reader);
  const { handler } = gate.settings;

  /**
   * @param {any} context
   * @param {() => Promise<unknown>} next
   */
  async function middleware(context, next) {
    const verdict = await gate.ask(context);
    if (verdict === null) return next();
    gate.inform(context.state, verdict);
    gate.tell(verdict, context);
    const leaving = closing(context.res);
    if (verdict.refused) {
      await new Promise((resolve) => slow(gate, leaving, () => resolve(undefined)));
      return refuse(verdict, context, next);
    }
    if (verdict.waitMs > 0 && !(await new Promise((resolve) => hold(gate, verdict, leaving, resolve)))) {
      // Nobody is there to answer.
      context.respond = false;
      return undefined;
    }
    write(gate, context.res, verdict.fields);
    refundAfter(gate, verdict, context.res, context);
    return next();
  }

  /**
   * @param {Verdict} verdict
   * @param {any} context
   * @param {() => Promise<unknown>} next
   */
  async function refuse(verdict, context, next) {
    const { statusCode, message } = gate.settings;
    if (handler !== null) {
      write(gate, context.res, refusalFields(verdict));
      return handler(context, next, { statusCode, message, decision: verdict.decision });
    }
    const said = await gate.said(verdict, context);
    const { status, fields, body } = toRefusal(gate, verdict, said);
    context.status = status;
    context.body = typeof body === 'string' ? body : Buffer.from(body);
    write(gate, context.res, fields);
    return undefined;
  }

  return withTools(middleware, gate);
}

module.exports = { throttle };
