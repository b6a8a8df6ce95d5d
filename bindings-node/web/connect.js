// Middleware with the arguments (request, response, next), for Express, Connect and plain handlers.
'use strict';

const { isPromise } = require('./callbacks.js');
const { onClientLeave, delay, refundAfter } = require('./delay.js');
const { Middleware } = require('./middleware.js');

/** @import { IncomingMessage, ServerResponse } from 'node:http' */
/** @import { Outcome } from './delay.js' */
/** @import { Reader } from './reader.js' */

/** @typedef {(error?: unknown) => unknown} Next */

/**
 * @param {Readonly<Record<string, unknown>>} options
 * @param {Reader} reader
 * @returns {{ middleware: Middleware, throttled: (request: any, response: any, next: Next) => unknown }}
 */
function connect(options, reader) {
  const middleware = new Middleware(options, reader);
  const { handler } = middleware;

  /**
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {Next} next
   * @returns {unknown} The result of `next`, or a promise of it after a delay or an asynchronous function. Undefined
   *   for a refusal.
   */
  function throttled(request, response, next) {
    const outcome = middleware.decide(request, response);
    if (!isPromise(outcome)) return act(outcome, request, response, next);
    const hadBegun = response.headersSent;
    return outcome.then((settled) => act(settled, request, response, next, hadBegun));
  }

  /**
   * @param {Outcome | null} outcome
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {Next} next
   * @param {boolean} [hadBegun] Whether the response had begun before an asynchronous function was called.
   */
  function act(outcome, request, response, next, hadBegun) {
    if (outcome === null) return next();
    setInfo(middleware, request, outcome);
    middleware.callOnRefused(outcome, request, response);
    if (outcome.refused) {
      const begun = hadBegun ?? response.headersSent;
      delay(middleware, outcome, onClientLeave(response), () => refuse(outcome, request, response, next, begun));
      return undefined;
    }
    if (outcome.delayMs === 0) return pass(outcome, request, response, next);
    return new Promise((resolve) => {
      delay(middleware, outcome, onClientLeave(response), resolve);
    }).then((isHere) => (isHere ? pass(outcome, request, response, next) : undefined));
  }

  /**
   * @param {Outcome} outcome
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {Next} next
   */
  function pass(outcome, request, response, next) {
    write(middleware, response, middleware.fieldNames, outcome.values);
    refundAfter(middleware, outcome, response, request, response);
    return next();
  }

  /**
   * @param {Outcome} outcome
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {Next} next
   * @param {boolean} begun
   */
  function refuse(outcome, request, response, next, begun) {
    if (handler !== null) {
      const { names, values, refused } = middleware.refused(outcome);
      write(middleware, response, names, values);
      callHandler(() => handler(request, response, next, refused), next);
      return;
    }
    const refusal = middleware.refusal(outcome, request, response);
    if (isPromise(refusal)) refusal.then((settled) => send(settled, request, response, begun));
    else send(refusal, request, response, begun);
  }

  /**
   * @param {{ status: number, names: string[], values: string[], body: Uint8Array }} refusal
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {boolean} begun
   */
  function send({ status, names, values, body }, request, response, begun) {
    if (response.headersSent) {
      // If an earlier handler began the response, the later ones that would finish it are not called. Closes the
      // connection, so that the response does not look complete. If it began during a delay, its author finishes it.
      if (begun && !response.writableEnded) response.destroy();
      return;
    }
    response.statusCode = status;
    write(middleware, response, names, values);
    response.end(request.method === 'HEAD' ? undefined : body);
  }

  return { middleware, throttled };
}

/**
 * Sets the property with the information about a request.
 * @param {Middleware} middleware
 * @param {any} target The request, or the state of Koa's context.
 * @param {Outcome} outcome
 */
function setInfo(middleware, target, outcome) {
  try {
    if (middleware.propertyName !== 'rateLimit' && typeof target[middleware.propertyName] === 'function') {
      throw new TypeError(`${middleware.propertyName} is a method of requests; give another name`);
    }
    if (!middleware.setInfoLazily(target, outcome)) target[middleware.propertyName] = middleware.info(outcome);
  } catch (error) {
    // The framework has a property with this name.
    middleware.failed('requestPropertyName', error);
  }
}

/**
 * Calls the application's `handler` for a refusal. Its errors go to the framework.
 * @param {() => unknown} call
 * @param {Next} next
 */
function callHandler(call, next) {
  try {
    const result = call();
    if (isPromise(result)) result.then(undefined, next);
  } catch (error) {
    next(error);
  }
}

/**
 * Writes header fields.
 * @param {Middleware} middleware
 * @param {ServerResponse} response
 * @param {readonly string[]} names
 * @param {readonly string[]} values
 */
function write(middleware, response, names, values) {
  try {
    for (let i = 0; i < values.length; i += 1) {
      response.setHeader(names[i], mergeField(middleware.isList, names[i], response.getHeader(names[i]), values[i]));
    }
  } catch (error) {
    // Header fields cannot be added to a response that has begun.
    if (!response.headersSent) middleware.failed('fields', error);
  }
}

/**
 * The value of a RateLimit field that another throttle may have set: a list of both, or the first value.
 * @param {boolean} isList Whether the field is a list.
 * @param {string} name
 * @param {unknown} current
 * @param {string} value
 */
function mergeField(isList, name, current, value) {
  if (current === undefined || !name.includes('ratelimit')) return value;
  return isList && !name.startsWith('x-') ? `${current}, ${value}` : String(current);
}

module.exports = { callHandler, connect, mergeField, setInfo, write };
