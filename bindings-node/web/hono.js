// Middleware for Hono on Node (@hono/node-server).
//
//     app.use(throttle('100/s'));
//
// All workers of the application count together, without being told. docs/node.md has the options,
// and what works in other places that run Hono; functions get the context.
'use strict';

const { withTools } = require('./connect.js');
const { Gate } = require('./gate.js');
const { closing, hold, refundAfter, slow } = require('./hold.js');
const { gather, readOptions } = require('./options.js');
const { nodeReader } = require('./reader.js');
const { refusalFields, toRefusal } = require('./refusal.js');

/** @import { Reader } from './gate.js' */
/** @import { Leaving } from './hold.js' */
/** @import { Verdict } from './verdict.js' */

/** @param {any} context What Node has of the request, if that is where we are. */
const peer = (context) => context.env?.incoming?.socket?.remoteAddress;

/** @type {Reader} */
const reader = {
  method: (context) => context.req.method,
  paths: (context) => new Set([context.req.path]),
  header(context, name) {
    const incoming = context.env?.incoming;
    return incoming ? nodeReader.header(incoming, name) : context.req.header(name);
  },
  peer,
  client: peer,
  isGone: (context) => context.env?.incoming?.socket?.destroyed ?? false,
  forwardedFor: (context) => context.req.header('x-forwarded-for'),
};

/**
 * @param {unknown} source
 * @param {unknown} [options]
 */
function throttle(source, options) {
  const gate = new Gate(readOptions(gather(source, options)), reader);
  const { requestPropertyName, handler } = gate.settings;

  /**
   * @param {any} context
   * @param {() => Promise<unknown>} next
   */
  async function middleware(context, next) {
    const verdict = await gate.ask(context);
    if (verdict === null) {
      await next();
      return undefined;
    }
    context.set(requestPropertyName, verdict.info);
    gate.tell(verdict, context);
    const leaving = toLeaving(context);
    if (verdict.refused) {
      await new Promise((resolve) => slow(gate, leaving, () => resolve(undefined)));
      return refuse(verdict, context, next);
    }
    if (verdict.waitMs > 0 && !(await new Promise((resolve) => hold(gate, verdict, leaving, resolve)))) {
      return context.body(null, 499); // nobody reads it
    }
    const outgoing = context.env?.outgoing;
    if (outgoing) refundAfter(gate, verdict, outgoing, context);
    await next();
    write(context, verdict.fields);
    if (!outgoing && gate.refunds && verdict.taken > 0) gate.finished(verdict, context.res.status < 400, context);
    return undefined;
  }

  /**
   * @param {Verdict} verdict
   * @param {any} context
   * @param {() => Promise<unknown>} next
   */
  async function refuse(verdict, context, next) {
    const { statusCode, message } = gate.settings;
    if (handler !== null) {
      const answer = await handler(context, next, { statusCode, message, decision: verdict.decision });
      // From `next` comes the context.
      if (answer !== undefined && answer !== context) context.res = answer;
      write(context, refusalFields(verdict));
      return undefined;
    }
    const said = await gate.said(verdict, context);
    const { status, fields, body } = toRefusal(gate, verdict, said);
    const headers = fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1]]] : []));
    return context.body(body, status, Object.fromEntries(headers));
  }

  /**
   * @param {any} context
   * @param {string[]} fields
   */
  function write(context, fields) {
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i];
      if (!context.res.headers.has(name)) context.header(name, fields[i + 1]);
      else if (gate.isList && name.startsWith('ratelimit')) context.header(name, fields[i + 1], { append: true });
    }
  }

  return withTools(middleware, gate);
}

/**
 * @param {any} context
 * @returns {Leaving}
 */
function toLeaving(context) {
  if (context.env?.outgoing) return closing(context.env.outgoing);
  return (gone) => {
    const { signal } = context.req.raw;
    signal?.addEventListener('abort', gone, { once: true });
    return () => signal?.removeEventListener('abort', gone);
  };
}

module.exports = { throttle };
