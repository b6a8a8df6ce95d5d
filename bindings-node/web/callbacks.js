// Calls of the application's functions: skip, tag, cost, body, onRefused, requestWasSuccessful. A function
// that throws, or whose promise rejects, must not fail the request.
'use strict';

/** @typedef {(...given: any[]) => any} Fn A function of the application. */

/** The result of a call whose function failed. */
const FAILURE = Symbol('failure');

class Callbacks {
  #failed;

  /** @param {(option: string, error: unknown) => void} failed Counts and reports a failure. */
  constructor(failed) {
    this.#failed = failed;
  }

  /**
   * Calls a function with the request, the response if the framework has one, and `more`.
   * @param {string} option
   * @param {Fn} fn
   * @param {any} request
   * @param {any} response
   * @param {unknown[]} more
   * @returns {any} The function's result, which may be a promise, or `FAILURE`.
   */
  call(option, fn, request, response, ...more) {
    try {
      return response === undefined ? fn(request, ...more) : fn(request, response, ...more);
    } catch (error) {
      this.#failed(option, error);
      return FAILURE;
    }
  }

  /**
   * Waits for the result of `call`. Returns `FAILURE` if it is a promise that rejects.
   * @param {string} option
   * @param {unknown} value
   */
  async settle(option, value) {
    try {
      return await value;
    } catch (error) {
      this.#failed(option, error);
      return FAILURE;
    }
  }
}

/**
 * @param {any} value
 * @returns {value is Promise<any>}
 */
function isPromise(value) {
  return typeof value === 'object' && value !== null && typeof value.then === 'function';
}

exports.Callbacks = Callbacks;
exports.FAILURE = FAILURE;
exports.isPromise = isPromise;
