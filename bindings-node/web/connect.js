// Middleware of the form (request, response, next) over Node's own requests and responses: for
// Express, Connect and plain handlers.
'use strict';

const { isPromise } = require('./callbacks.js');
const { closing, delay, refundAfter } = require('./delay.js');
const { Middleware } = require('./middleware.js');

/** @import { IncomingMessage, ServerResponse } from 'node:http' */
/** @import { Outcome } from './delay.js' */
/** @import { Reader } from './middleware.js' */

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
   * @returns {unknown} What `next` gives, or a promise of it where that takes a while; undefined for
   *   a request that does not get so far.
   */
  function throttled(request, response, next) {
    const outcome = middleware.decide(request, response);
    if (!isPromise(outcome)) return go(outcome, request, response, next);
    const begun = response.headersSent;
    return outcome.then((settled) => go(settled, request, response, next, begun));
  }

  /**
   * @param {Outcome | null} outcome
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {Next} next
   * @param {boolean} [begun] Whether the response had begun when the request came, if that is a while ago.
   */
  function go(outcome, request, response, next, begun) {
    if (outcome === null) return next();
    inform(middleware, request, outcome);
    middleware.tell(outcome, request, response);
    if (outcome.refused) {
      const early = begun ?? response.headersSent;
      delay(middleware, outcome, closing(response), () => refuse(outcome, request, response, next, early));
      return undefined;
    }
    if (outcome.delayMs === 0) return pass(outcome, request, response, next);
    return new Promise((resolve) => {
      delay(middleware, outcome, closing(response), resolve);
    }).then((here) => (here ? pass(outcome, request, response, next) : undefined));
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
      handle(() => handler(request, response, next, refused), next);
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
      // If the response had begun before the throttle was asked, the application behind it does not get
      // to finish it: so it must not look whole. If it began meanwhile, the process that began it ends it.
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
 * Sets the property that the application looks for.
 * @param {Middleware} middleware
 * @param {any} place
 * @param {Outcome} outcome
 */
function inform(middleware, place, outcome) {
  try {
    if (middleware.propertyName !== 'rateLimit' && typeof place[middleware.propertyName] === 'function') {
      throw new TypeError(`${middleware.propertyName} is a method of requests; give another name`);
    }
    if (!middleware.informLazily(place, outcome)) place[middleware.propertyName] = middleware.info(outcome);
  } catch (error) {
    // A name that the framework uses for something of its own.
    middleware.failed('requestPropertyName', error);
  }
}

/**
 * Lets the application answer a refusal: its errors go where its other errors go.
 * @param {() => unknown} answer
 * @param {Next} next
 */
function handle(answer, next) {
  try {
    const done = answer();
    if (isPromise(done)) done.then(undefined, next);
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
      response.setHeader(names[i], joined(middleware.isList, names[i], response.getHeader(names[i]), values[i]));
    }
  } catch (error) {
    // If the response has been sent, there is nothing to write.
    if (!response.headersSent) middleware.failed('fields', error);
  }
}

/**
 * A field where another throttle may have written it: both stand there, or the first does.
 * @param {boolean} isList Whether both may.
 * @param {string} name
 * @param {unknown} present
 * @param {string} value
 */
function joined(isList, name, present, value) {
  if (present === undefined || !name.includes('ratelimit')) return value;
  return isList && !name.startsWith('x-') ? `${present}, ${value}` : String(present);
}

module.exports = { connect, handle, inform, joined, write };
