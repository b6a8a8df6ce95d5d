// Errors: one class for all, with the code of the kind. What the native part throws is turned into
// it here, and nowhere else.
'use strict';

/** @import { ErrorCode } from '../index.js' */

/**
 * @typedef {object} Found Where and why an error was found.
 * @property {string} [field] The field of the configuration that is wrong.
 * @property {number} [line] The line of the configuration text, from 1.
 * @property {unknown} [cause] What was caught.
 */

/** Every error that dthrottle throws on purpose. */
class DthrottleError extends Error {
  /**
   * @param {ErrorCode} code
   * @param {string} message
   * @param {Found} [found]
   */
  constructor(code, message, { field, line, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    if (field !== undefined) this.field = field;
    if (line !== undefined) this.line = line;
  }
}

// Not an own property: printing an error would show it twice.
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
 * What to throw for what was caught. A native error carries code, line (0: none) and field in its
 * `code`; anything unknown is a bug in dthrottle: a panic, or a trap of WebAssembly.
 * @param {unknown} caught
 * @returns {unknown}
 */
function explain(caught) {
  // A RangeError is the caller's: no stack or no memory left.
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
  // The trace need not show this function.
  Error.captureStackTrace?.(error, explain);
  return error;
}

/**
 * Makes a native call. Users' own code, such as a getter of theirs, must not run in it: what that
 * throws is no bug of ours.
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
