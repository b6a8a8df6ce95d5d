// Errors about options that core does not read, and a refusal as an error for error handlers.
'use strict';

const { DthrottleError } = require('../api/errors.js');
const { describe } = require('../api/values.js');

/** @import { Decision } from '../index.js' */

/**
 * The error about an option's value.
 * @param {string} option
 * @param {unknown} value
 * @param {string} right What it must be.
 */
const wrong = (option, value, right) => misuse(option, `must be ${right}, got ${describe(value)}`);

/**
 * The error about an option.
 * @param {string} option
 * @param {string} message
 */
function misuse(option, message) {
  return new DthrottleError('DTHROTTLE_CONFIG', `${option}: ${message}`, { field: option });
}

/**
 * Checks that all names are known: a misspelled option must not be silently without effect.
 * @param {string} option Of which these are the names of parts; empty: they are options themselves.
 * @param {Iterable<string>} given
 * @param {readonly string[]} names
 */
function known(option, given, names) {
  for (const name of given) {
    const whole = option === '' ? name : `${option}.${name}`;
    if (!names.includes(name)) throw misuse(whole, `unknown option; known are: ${names.join(', ')}`);
  }
}

/** What the error handler of a framework gets for a refusal. */
class RefusalError extends Error {
  code = 'DTHROTTLE_REFUSED';

  /**
   * @param {number} statusCode
   * @param {Decision} decision
   */
  constructor(statusCode, decision) {
    // A stack would say nothing about the client, and costs more than the decision.
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super('rate limit exceeded');
    Error.stackTraceLimit = limit;
    this.statusCode = statusCode;
    this.decision = decision;
  }
}

module.exports = { RefusalError, known, misuse, wrong };
