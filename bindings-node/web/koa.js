// Middleware for Koa.
//
//     app.use(throttle('100/s'));
//
// All workers of the application share one table. docs/node.md has the options. The application's functions receive
// the context.
'use strict';

const { setInfo, write } = require('./connect.js');
const { onClientLeave, delay, refundAfter } = require('./delay.js');
const { Middleware } = require('./middleware.js');
const { mergeOptions } = require('./options.js');
const { nodeReader, toPaths } = require('./reader.js');
const { withTools } = require('./tools.js');

/** @import { Outcome } from './delay.js' */
/** @import { Reader } from './reader.js' */

/** @type {Reader} */
const reader = {
  method: (context) => context.method,
  ignoresCase: true, // like the default of @koa/router
  paths: (context) => toPaths(context.originalUrl ?? context.url),
  header: (context, name) => nodeReader.header(context.req, name),
  peer: (context) => nodeReader.peer(context.req),
  // With app.proxy, Koa uses the leftmost entry of X-Forwarded-For.
  client: (context) => (context.app?.proxy ? context.ip : undefined),
  isGone: (context) => nodeReader.isGone(context.req),
  forwardedFor: (context) => nodeReader.forwardedFor(context.req),
  trustProxy(context) {
    if (!context.app?.proxy || context.app.maxIpsCount > 0) return undefined;
    return (
      "app.proxy is set without app.maxIpsCount, so a client can send any address: " +
      'set that to the number of proxies, or set trustedProxies'
    );
  },
};

/**
 * @param {unknown} source
 * @param {unknown} [options]
 */
function throttle(source, options) {
  const middleware = new Middleware(mergeOptions(source, options), reader);
  const { handler } = middleware;

  /**
   * @param {any} context
   * @param {() => Promise<unknown>} next
   */
  async function throttled(context, next) {
    const outcome = await middleware.decide(context);
    if (outcome === null) return next();
    setInfo(middleware, context.state, outcome);
    middleware.callOnRefused(outcome, context);
    const isHere = await new Promise((resolve) => delay(middleware, outcome, onClientLeave(context.res), resolve));
    if (outcome.refused) return refuse(outcome, context, next);
    if (!isHere) {
      // The client has left.
      context.respond = false;
      return undefined;
    }
    write(middleware, context.res, middleware.fieldNames, outcome.values);
    refundAfter(middleware, outcome, context.res, context);
    return next();
  }

  /**
   * @param {Outcome} outcome
   * @param {any} context
   * @param {() => Promise<unknown>} next
   */
  async function refuse(outcome, context, next) {
    if (handler !== null) {
      const { names, values, refused } = middleware.refused(outcome);
      write(middleware, context.res, names, values);
      return handler(context, next, refused);
    }
    const { status, names, values, body } = await middleware.refusal(outcome, context);
    context.status = status;
    context.body = Buffer.from(body);
    write(middleware, context.res, names, values);
    return undefined;
  }

  return withTools(throttled, middleware);
}

// Supports `import throttle` and `import { throttle }`. Node finds the named export in the last line.
// @ts-expect-error TypeScript does not support a function with properties as a module.
module.exports = Object.assign(throttle, { default: throttle });
Object.defineProperty(module.exports, 'throttle', { enumerable: true, value: throttle });
