// Middleware of the form (request, response, next) over Node's own requests and responses: for
// Express, Connect and plain handlers.
'use strict';

const { isPromise } = require('./gate.js');
const { POLICY, joined } = require('./headers.js');
const { closing, hold, refundAfter, slow } = require('./hold.js');
const { handle, refusalFields, toRefusal } = require('./refusal.js');

/** @import { IncomingMessage, ServerResponse } from 'node:http' */
/** @import { Gate } from './gate.js' */
/** @import { Verdict } from './verdict.js' */

/** @typedef {(error?: unknown) => unknown} Next */

/**
 * @param {Gate} gate
 */
function toMiddleware(gate) {
  const { handler } = gate.settings;

  /**
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {Next} next
   * @returns {unknown} What `next` gives, or a promise of it where that takes a while; undefined for
   *   a request that does not get so far.
   */
  function middleware(request, response, next) {
    const verdict = gate.ask(request, response);
    if (!isPromise(verdict)) return go(verdict, request, response, next);
    const begun = response.headersSent;
    return verdict.then((settled) => go(settled, request, response, next, begun));
  }

  /**
   * @param {Verdict | null} verdict
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {Next} next
   * @param {boolean} [begun] Whether the answer had begun when the request came, if that is a while ago.
   */
  function go(verdict, request, response, next, begun) {
    if (verdict === null) return next();
    gate.inform(request, verdict);
    gate.tell(verdict, request, response);
    if (verdict.refused) {
      const early = begun ?? response.headersSent;
      slow(gate, closing(response), () => refuse(verdict, request, response, next, early));
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
    refundAfter(gate, verdict, response, request, response);
    return next();
  }

  /**
   * @param {Verdict} verdict
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {Next} next
   * @param {boolean} begun
   */
  function refuse(verdict, request, response, next, begun) {
    if (handler !== null) {
      write(gate, response, refusalFields(verdict));
      handle(gate, handler, verdict, request, response, next);
      return;
    }
    const said = gate.said(verdict, request, response);
    if (isPromise(said)) said.then((settled) => send(verdict, settled, request, response, begun));
    else send(verdict, said, request, response, begun);
  }

  /**
   * @param {Verdict} verdict
   * @param {unknown} message
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {boolean} begun
   */
  function send(verdict, message, request, response, begun) {
    if (response.headersSent) {
      // Who begins an answer and hands the request on leaves the rest to those behind it, who do not
      // get it: so it is never whole, and must not look so. Who began meanwhile has it, and ends it.
      if (begun && !response.writableEnded) response.destroy();
      return;
    }
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
 * Writes fields.
 * @param {Gate} gate
 * @param {ServerResponse} response
 * @param {string[]} fields
 */
function write(gate, response, fields) {
  try {
    writeAll(gate, response, fields);
  } catch (error) {
    // If somebody has answered, there is nothing to say. To look before takes longer.
    if (!response.headersSent) gate.failed('fields', error);
  }
}

/**
 * @param {Gate} gate
 * @param {ServerResponse} response
 * @param {string[]} fields
 */
function writeAll(gate, response, fields) {
  // Without these two nobody has written any, but for those of habit.
  const isFirst = fields[0] === POLICY && response.getHeader(POLICY) === undefined && response.getHeader(fields[2]) === undefined;
  if (isFirst && !gate.settings.legacyHeaders) {
    for (let i = 0; i < fields.length; i += 2) response.setHeader(fields[i], fields[i + 1]);
    return;
  }
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i];
    response.setHeader(name, joined(gate.isList, name, response.getHeader(name), fields[i + 1]));
  }
}

module.exports = { toMiddleware, tools, withTools, write };
