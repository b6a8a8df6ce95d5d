// The response to a request that is refused: status, fields and body; or what the application does.
'use strict';

const { isBytes } = require('../face/values.js');
const { isPromise } = require('./functions.js');
const { problem, retryAfter } = require('./headers.js');

/** @import { Gate } from './gate.js' */
/** @import { Verdict } from './verdict.js' */

/**
 * @typedef {object} Refusal
 * @property {number} status
 * @property {string[]} fields Names and values in turn.
 * @property {string | Uint8Array} body
 */

const USUAL = 'Too Many Requests\n';
const TEXT = 'text/plain; charset=utf-8';

/**
 * The fields of a refusal that do not depend on its body.
 * @param {Verdict} verdict
 */
function refusalFields({ answer, fields }) {
  return ['Retry-After', String(retryAfter(answer)), ...fields];
}

/**
 * Lets the application answer. What it does here is its own: errors go where its other errors go.
 * @param {Gate} gate
 * @param {import('./options.js').Fn} handler
 * @param {Verdict} verdict
 * @param {any} request
 * @param {any} response
 * @param {(error?: unknown) => unknown} next
 */
function handle(gate, handler, { decision }, request, response, next) {
  const { statusCode, message } = gate.settings;
  try {
    const done = handler(request, response, next, { statusCode, message, decision });
    if (isPromise(done)) done.then(undefined, next);
  } catch (error) {
    next(error);
  }
}

/**
 * @param {Gate} gate
 * @param {Verdict} verdict
 * @param {unknown} message What the option says, or its function gave.
 * @returns {Refusal}
 */
function toRefusal(gate, verdict, message) {
  const { statusCode: status } = gate.settings;
  const [kind, body] =
    message === 'problem+json'
      ? ['application/problem+json', problem(status, [gate.policy(verdict) ?? ''].filter(Boolean), retryAfter(verdict.answer))]
      : toContent(gate, message);
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  const fields = ['Content-Type', kind, 'Content-Length', String(length), ...refusalFields(verdict)];
  return { status, fields, body };
}

/**
 * @param {Gate} gate
 * @param {unknown} message
 * @returns {[string, string | Uint8Array]}
 */
function toContent(gate, message) {
  if (isBytes(message)) return ['application/octet-stream', message];
  if (typeof message === 'string') return [TEXT, message];
  if (message === undefined || message === null) return [TEXT, USUAL];
  try {
    const json = JSON.stringify(message);
    if (json !== undefined) return ['application/json; charset=utf-8', json];
    throw new TypeError('neither text nor bytes nor an object');
  } catch (error) {
    gate.failed('message', error);
    return [TEXT, USUAL];
  }
}

module.exports = { handle, refusalFields, toRefusal };
