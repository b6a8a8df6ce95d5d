// Functions of the application: they may throw what they like. What goes wrong is counted, and the
// first of each cause is reported.
'use strict';

const { describe } = require('../face/values.js');

/** @import { Fn } from './options.js' */
/** @import { Reports } from './validate.js' */

/** What a request costs whose cost nobody knows: to pass for nothing would be an invitation. */
const COST = 1;

/** @type {Record<string, unknown>} What stands for a function that fails. */
const INSTEAD = { cost: COST };

class Functions {
  #reports;

  /** @param {Reports} reports */
  constructor(reports) {
    this.#reports = reports;
    /** What happened in this process; `throttle.stats()` has the rest. */
    this.counts = { passed: 0, refused: 0, dryRun: 0, delayed: 0, gaveUp: 0, untagged: 0, failed: 0 };
  }

  /**
   * Calls a function of the application; undefined if it fails, or what stands for it.
   * @param {string} option
   * @param {Fn} fn
   * @param {any} request
   * @param {any} companion
   * @param {unknown[]} more
   */
  call(option, fn, request, companion, ...more) {
    try {
      return companion === undefined ? fn(request, ...more) : fn(request, companion, ...more);
    } catch (error) {
      this.failed(option, error);
      return INSTEAD[option];
    }
  }

  /**
   * Waits for what a function of the application gave; the same if it fails.
   * @param {string} option
   * @param {unknown} value
   */
  async settle(option, value) {
    try {
      return await value;
    } catch (error) {
      this.failed(option, error);
      return INSTEAD[option];
    }
  }

  /**
   * Counts an error, and reports the first of each cause.
   * @param {string} cause
   * @param {unknown} error
   */
  failed(cause, error) {
    this.counts.failed += 1;
    const message = error instanceof Error ? error.message : describe(error);
    this.#reports.failure('DTHROTTLE_FAILED', cause, `${cause} failed: ${message}`, error);
  }
}

/**
 * @param {any} value
 * @returns {value is Promise<any>}
 */
function isPromise(value) {
  return typeof value === 'object' && value !== null && typeof value.then === 'function';
}

exports.COST = COST;
exports.Functions = Functions;
exports.isPromise = isPromise;
