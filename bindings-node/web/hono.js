// Middleware for Hono on Node (@hono/node-server).
//
//     app.use(throttle('100/s'));
//
// All workers of the application share one table. docs/node.md has the options, and what works on other platforms of
// Hono. Functions get the context.
'use strict';

const { onClientLeave, delay, refundAfter } = require('./delay.js');
const { Middleware } = require('./middleware.js');
const { mergeOptions } = require('./options.js');
const { nodeReader } = require('./reader.js');
const { withTools } = require('./tools.js');

/** @import { SubscribeToLeave, Outcome } from './delay.js' */
/** @import { Reader } from './reader.js' */

/** @param {any} context It has `env.incoming` on Node only. */
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
  isGone: (context) => context.env?.incoming?.socket?.destroyed ?? false,
  forwardedFor: (context) => context.req.header('x-forwarded-for'),
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
    if (outcome === null) {
      await next();
      return undefined;
    }
    context.set(middleware.propertyName, middleware.info(outcome));
    middleware.callOnRefused(outcome, context);
    const isHere = await new Promise((resolve) => delay(middleware, outcome, toSubscribeToLeave(context), resolve));
    if (outcome.refused) return refuse(outcome, context, next);
    if (!isHere) return context.body(null, 499); // the client has left
    const outgoing = context.env?.outgoing;
    if (outgoing) refundAfter(middleware, outcome, outgoing, context);
    await next();
    write(context, middleware.fieldNames, outcome.values);
    if (!outgoing && middleware.refunds && outcome.taken > 0) middleware.finish(outcome, context.res.status < 400, context);
    return undefined;
  }

  /**
   * @param {Outcome} outcome
   * @param {any} context
   * @param {() => Promise<unknown>} next
   */
  async function refuse(outcome, context, next) {
    if (handler !== null) {
      const { names, values, refused } = middleware.refused(outcome);
      const result = await handler(context, next, refused);
      // A handler that returns the result of `next` returns the context.
      if (result !== undefined && result !== context) context.res = result;
      write(context, names, values);
      return undefined;
    }
    const { status, names, values, body } = await middleware.refusal(outcome, context);
    return context.body(body, status, Object.fromEntries(names.slice(0, values.length).map((name, i) => [name, values[i]])));
  }

  /**
   * @param {any} context
   * @param {readonly string[]} names
   * @param {readonly string[]} values
   */
  function write(context, names, values) {
    for (let i = 0; i < values.length; i += 1) {
      if (!context.res.headers.has(names[i])) context.header(names[i], values[i]);
      else if (middleware.isList && names[i].startsWith('ratelimit')) context.header(names[i], values[i], { append: true });
    }
  }

  return withTools(throttled, middleware);
}

/**
 * @param {any} context
 * @returns {SubscribeToLeave}
 */
function toSubscribeToLeave(context) {
  if (context.env?.outgoing) return onClientLeave(context.env.outgoing);
  return (onLeave) => {
    const { signal } = context.req.raw;
    if (signal?.aborted) {
      const already = setImmediate(onLeave);
      return () => clearImmediate(already);
    }
    signal?.addEventListener('abort', onLeave, { once: true });
    return () => signal?.removeEventListener('abort', onLeave);
  };
}

// Supports `import throttle` and `import { throttle }`. Node finds the named export in the last line.
// @ts-expect-error TypeScript does not support a function with properties as a module.
module.exports = Object.assign(throttle, { default: throttle });
Object.defineProperty(module.exports, 'throttle', { enumerable: true, value: throttle });
