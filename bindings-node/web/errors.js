// Errors about options that core does not read.
'use strict';

const { DthrottleError } = require('../face/errors.js');
const { describe } = require('../face/values.js');

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

module.exports = { known, misuse, wrong };
