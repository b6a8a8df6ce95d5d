// Middleware of the form (request, response, next) over Node's own requests and responses: for
// Express, Connect and plain handlers.
'use strict';

const { isPromise } = require('./gate.js');
const { POLICY } = require('./headers.js');
const { closing, hold, refundAfter, slow } = require('./hold.js');
const { RateLimitInfo } = require('./info.js');
const { RequestProperty } = require('./property.js');
const { refusalFields, toRefusal } = require('./refusal.js');

/** @import { IncomingMessage, ServerResponse } from 'node:http' */
/** @import { Verdict } from './answers.js' */
/** @import { Gate } from './gate.js' */

/** @typedef {(error?: unknown) => unknown} Next */

/** As responses keep it. */
const POLICY_FOUND = POLICY.toLowerCase();

/**
 * @param {Gate} gate
 */
function toMiddleware(gate) {
  const { requestPropertyName, handler } = gate.settings;
  const { refunds } = gate;
  const property = new RequestProperty(requestPropertyName);

  /**
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {Next} next
   * @returns {unknown} What `next` gives, or a promise of it where that takes a while; undefined for
   *   a request that does not get so far.
   */
  function middleware(request, response, next) {
    const verdict = gate.ask(request, response);
    if (isPromise(verdict)) return verdict.then((settled) => go(settled, request, response, next));
    return go(verdict, request, response, next);
  }

  /**
   * @param {Verdict | null} verdict
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {Next} next
   */
  function go(verdict, request, response, next) {
    if (verdict === null) return next();
    property.set(request, new RateLimitInfo(verdict.decision, verdict.tag));
    gate.tell(verdict, request, response);
    if (verdict.refused) {
      slow(gate, closing(response), () => refuse(verdict, request, response, next));
      return undefined;
    }
    if (verdict.waitMs > 0) {
      return new Promise((resolve) => {
        hold(gate, verdict, closing(response), resolve);
      }).then((here) => (here ? pass(verdict, request, response, next) : undefined));
    }
    return pass(verdict, request, response, next);
  }

  /**
   * @param {Verdict} verdict
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {Next} next
   */
  function pass(verdict, request, response, next) {
    write(gate, response, verdict.fields);
    if (refunds) refundAfter(gate, verdict, response, request, response);
    return next();
  }

  /**
   * @param {Verdict} verdict
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {Next} next
   */
  function refuse(verdict, request, response, next) {
    if (handler !== null) {
      write(gate, response, refusalFields(verdict));
      const { statusCode, message } = gate.settings;
      // What the application does here is its own: errors go where its other errors go.
      try {
        const done = handler(request, response, next, { statusCode, message, decision: verdict.decision });
        if (isPromise(done)) done.then(undefined, next);
      } catch (error) {
        next(error);
      }
      return;
    }
    const said = gate.said(verdict, request, response);
    if (isPromise(said)) said.then((settled) => send(verdict, settled, request, response));
    else send(verdict, said, request, response);
  }

  /**
   * @param {Verdict} verdict
   * @param {unknown} message
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   */
  function send(verdict, message, request, response) {
    // Somebody has answered meanwhile.
    if (response.headersSent) return;
    const { status, fields, body } = toRefusal(gate, verdict, message);
    response.statusCode = status;
    write(gate, response, fields);
    response.end(request.method === 'HEAD' ? undefined : body);
  }

  return withTools(middleware, gate);
}

/**
 * What every middleware has besides.
 * @param {Gate} gate
 */
function tools(gate) {
  return {
    get domain() {
      return gate.domain;
    },
    counts: gate.counts,
    /** @param {string | number | bigint | Uint8Array} tag */
    resetKey: (tag) => gate.reset(tag),
    close: () => gate.close(),
  };
}

/**
 * A middleware with what every one has besides. To look at its domain opens it, which may wait.
 * @template {Function} F
 * @param {F} middleware
 * @param {Gate} gate
 * @returns {F & ReturnType<typeof tools>}
 */
function withTools(middleware, gate) {
  return /** @type {any} */ (Object.defineProperties(middleware, Object.getOwnPropertyDescriptors(tools(gate))));
}

/**
 * Writes fields. Where another throttle has written them, both may stand there or the first does.
 * @param {Gate} gate
 * @param {ServerResponse} response
 * @param {string[]} fields
 */
function write(gate, response, fields) {
  try {
    writeAll(gate, response, fields);
  } catch (error) {
    // Somebody has answered. To look before takes longer.
    if (!response.headersSent) throw error;
  }
}

/**
 * @param {Gate} gate
 * @param {ServerResponse} response
 * @param {string[]} fields
 */
function writeAll(gate, response, fields) {
  // All of them begin with the policy: without it nobody has written any.
  if (fields[0] === POLICY && response.getHeader(POLICY_FOUND) === undefined) {
    for (let i = 0; i < fields.length; i += 2) response.setHeader(fields[i], fields[i + 1]);
    return;
  }
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i];
    const present = response.getHeader(name);
    if (present === undefined || !name.includes('RateLimit')) response.setHeader(name, fields[i + 1]);
    else if (gate.isList && !name.startsWith('X-')) response.setHeader(name, `${present}, ${fields[i + 1]}`);
  }
}

module.exports = { toMiddleware, tools, withTools, write };
