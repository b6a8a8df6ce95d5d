// Errors about options that core does not read, and the error that represents a refusal for error handlers.
'use strict';

const { DthrottleError } = require('../api/errors.js');
const { describe } = require('../api/values.js');

/** @import { Decision } from '../index.js' */

/**
 * The error about an option's value.
 * @param {string} option
 * @param {unknown} value
 * @param {string} expected What would be right, such as `true or false`.
 */
const badValue = (option, value, expected) => badOption(option, `must be ${expected}, got ${describe(value)}`);

/**
 * Returns the error about an option. `message` continues a sentence that starts with its name.
 * @param {string} option
 * @param {string} message
 */
function badOption(option, message) {
  return new DthrottleError('DTHROTTLE_CONFIG', `\`${option}\` ${message}`, { field: option });
}

/**
 * Throws an error about the first unknown name.
 * @param {string} option The option whose parts have these names; empty for options themselves.
 * @param {Iterable<string>} given
 * @param {readonly string[]} names The known names.
 */
function checkNames(option, given, names) {
  for (const name of given) {
    const whole = option === '' ? name : `${option}.${name}`;
    if (!names.includes(name)) throw badOption(whole, `is an unknown option; the known names are ${names.join(', ')}`);
  }
}

/** The error that the error handlers of a framework get for a refusal. */
class RefusalError extends Error {
  code = 'DTHROTTLE_REFUSED';

  /**
   * @param {number} statusCode
   * @param {Decision} decision
   */
  constructor(statusCode, decision) {
    // Without a stack, which would not help to find the client, and takes longer than the decision.
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super('rate limit exceeded');
    Error.stackTraceLimit = limit;
    this.statusCode = statusCode;
    this.decision = decision;
  }
}

module.exports = { RefusalError, badOption, badValue, checkNames };
