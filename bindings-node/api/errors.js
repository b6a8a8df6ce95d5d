// The class of all errors, and the conversion of the errors of the native part.
'use strict';

/** @import { ErrorCode } from '../index.js' */

/**
 * @typedef {object} Details
 * @property {string} [field] The wrong field of the configuration.
 * @property {number} [line] The line in the configuration text, from 1.
 * @property {unknown} [cause] The error that was caught.
 */

/** Every error that dthrottle throws on purpose. */
class DthrottleError extends Error {
  /**
   * @param {ErrorCode} code
   * @param {string} message
   * @param {Details} [details]
   */
  constructor(code, message, { field, line, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    if (field !== undefined) this.field = field;
    if (line !== undefined) this.line = line;
  }
}

// Defined on the prototype, because Node prints an own property `name` in addition to the stack.
Object.defineProperty(DthrottleError.prototype, 'name', {
  value: 'DthrottleError',
  configurable: true,
  writable: true,
});

/**
 * The error about an argument.
 * @param {string} message
 * @param {unknown} [cause]
 */
function badArgument(message, cause) {
  return new DthrottleError('DTHROTTLE_ARGUMENT', message, { cause });
}

/**
 * Converts an error of the native part to the error to throw. The `code` of a native error has code, line (0 for none)
 * and field. Any other error is a bug in dthrottle: a panic, or a trap of WebAssembly.
 * @param {unknown} caught
 * @returns {unknown}
 */
function explain(caught) {
  // A RangeError means that the caller has no stack or no memory left.
  if (caught instanceof DthrottleError || caught instanceof RangeError) return caught;
  const { code, message } = /** @type {{ code?: unknown, message?: unknown }} */ (caught ?? {});
  const parts = /^(DTHROTTLE_[A-Z]+) (\d+) (.*)$/s.exec(String(code));
  const error = parts
    ? new DthrottleError(/** @type {ErrorCode} */ (parts[1]), String(message), {
        field: parts[3] || undefined,
        line: Number(parts[2]) || undefined,
      })
    : new DthrottleError('DTHROTTLE_INTERNAL', `a bug in dthrottle: ${message ?? caught}`, {
        cause: caught,
      });
  // Removes this function from the stack.
  Error.captureStackTrace?.(error, explain);
  return error;
}

/**
 * Makes a native call and converts its errors. No code of the user, such as a getter, may run in it, because its
 * errors would be reported as bugs.
 * @template T
 * @param {() => T} call
 * @returns {T}
 */
function attempt(call) {
  try {
    return call();
  } catch (caught) {
    throw explain(caught);
  }
}

module.exports = { DthrottleError, attempt, badArgument, explain };
