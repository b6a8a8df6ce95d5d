// Reports misuse and failures as warnings of the process, each once, with a code that docs/node.md explains. Reporting
// never throws.
'use strict';

const { describe, isTable } = require('../api/values.js');
const { badValue, checkNames } = require('./errors.js');

/** The codes of the checks for misuse, by the names that turn them off in the option `validate`. */
const CHECKS = /** @type {const} */ ({
  createdInHandler: 'DTHROTTLE_CREATED_IN_HANDLER',
  doubleCount: 'DTHROTTLE_DOUBLE_COUNT',
  forwarded: 'DTHROTTLE_FORWARDED',
  ipv6Tag: 'DTHROTTLE_IPV6_TAG',
  sameDomain: 'DTHROTTLE_SAME_DOMAIN',
  trustProxy: 'DTHROTTLE_TRUST_PROXY',
  window: 'DTHROTTLE_WINDOW',
});

/** @typedef {keyof typeof CHECKS} Check */

/** The code of core's warnings about tables. */
const TABLE = 'DTHROTTLE_TABLE';

/** The depth of the stack that is searched for HANDLER. */
const MAX_STACK_DEPTH = 60;
/** The function of Node that calls the handler of a request. If it is on the stack, a request is being handled. */
const HANDLER = /\bparserOnIncoming\b/;

/** The number of requests that are inspected. Misuse shows in the first ones or never. */
const INSPECTED_REQUESTS = 100;

/** @type {Set<string>} The misuse that was reported in this process. */
const reported = new Set();

/** @type {Map<string, Set<string>>} The reports of middleware that is made for every request, by the calling line. */
const reportedInHandlers = new Map();

/** @type {WeakMap<object, Set<string>>} The buckets in which each request was counted. */
const counted = new WeakMap();

/** @type {WeakMap<object, number>} Numbers that identify tables without a name. */
const tableNumbers = new WeakMap();
let lastNumber = 0;

/** Reports of one middleware. */
class Reports {
  /** @type {Set<string>} */
  #reported = new Set();
  /** @type {Set<string>} The codes that are turned off. */
  #off;
  #left = INSPECTED_REQUESTS;

  /**
   * @param {unknown} [validate] The option.
   * @param {boolean} [isPrivate] Whether the middleware has its own table.
   */
  constructor(validate = true, isPrivate = false) {
    this.#off = new Set(toOff(validate).map((check) => CHECKS[check]));
    this.#checkStack(isPrivate);
  }

  /** Whether to inspect a request. True for the first ones. */
  get isInspecting() {
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  /**
   * Reports a warning of core.
   * @param {string} code
   * @param {string} message
   */
  warn(code, message) {
    const isMisuse = Object.values(CHECKS).some((check) => check === code);
    // All middleware of a process gets the same warning about their table.
    if (isMisuse || code === TABLE) this.#misuse(code, message);
    else this.#reportOnce(code, message, message);
  }

  /**
   * Reports misuse, unless `message` is undefined.
   * @param {Check} check
   * @param {string | undefined} message
   */
  misuse(check, message) {
    if (message !== undefined) this.#misuse(CHECKS[check], message);
  }

  /**
   * @param {string} code
   * @param {string} message
   */
  #misuse(code, message) {
    if (this.#off.has(code) || this.#reported.has(code) || reported.has(`${code} ${message}`)) return;
    reported.add(`${code} ${message}`);
    this.#reportOnce(code, '', message);
  }

  /**
   * Reports the first error of each cause.
   * @param {string} cause
   * @param {unknown} error
   */
  failed(cause, error) {
    const message = error instanceof Error ? error.message : describe(error);
    this.failure('DTHROTTLE_FAILED', cause, `${cause} failed: ${message}`, error);
  }

  /**
   * Reports the first failure of each cause.
   * @param {'DTHROTTLE_FAILED' | 'DTHROTTLE_NO_TAG'} code
   * @param {string} cause
   * @param {string} message
   * @param {unknown} [error]
   */
  failure(code, cause, message, error) {
    this.#reportOnce(code, cause, `${message}; this is reported once, and counted`, error instanceof Error ? error.stack : undefined);
  }

  /**
   * Emits one warning for each cause.
   * @param {string} code
   * @param {string} cause
   * @param {string} message
   * @param {string} [detail]
   */
  #reportOnce(code, cause, message, detail) {
    const key = `${code} ${cause}`.trim();
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    emit(code, message, detail);
  }

  /**
   * Reports a request that is counted twice.
   * @param {any} request
   * @param {string | object} table Its name, or an object that identifies it.
   * @param {string} domain
   * @param {string} tag
   */
  counted(request, table, domain, tag) {
    if (this.#off.has(CHECKS.doubleCount)) return;
    const key = JSON.stringify([typeof table === 'string' ? table : toNumber(table), domain, tag]);
    const buckets = counted.get(request) ?? new Set();
    counted.set(request, buckets);
    if (buckets.has(key)) {
      this.misuse(
        'doubleCount',
        `a request was counted twice in the domain '${domain}': the middleware is used twice, or two ` +
          'middlewares have the same rules; give each a domain of its own',
      );
    }
    buckets.add(key);
  }

  /**
   * Reports a middleware that is made within a handler.
   * @param {boolean} isPrivate
   */
  #checkStack(isPrivate) {
    if (this.#off.has(CHECKS.createdInHandler)) return;
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = MAX_STACK_DEPTH;
    const { stack = '' } = new Error();
    Error.stackTraceLimit = limit;
    if (!HANDLER.test(stack)) return;
    const caller = stack.split('\n').slice(1).find((line) => !line.includes(__dirname)) ?? '';
    this.#reported = reportedInHandlers.get(caller) ?? this.#reported;
    reportedInHandlers.set(caller, this.#reported);
    const effect = isPrivate ? ': with table: false, each has an empty table and refuses nobody' : '';
    this.misuse(
      'createdInHandler',
      `this middleware was made while a request was handled; make it once, where the application starts${effect}`,
    );
  }
}

/** @param {object} table */
function toNumber(table) {
  const number = tableNumbers.get(table);
  if (number !== undefined) return number;
  lastNumber += 1;
  tableNumbers.set(table, lastNumber);
  return lastNumber;
}

/**
 * The checks that are turned off.
 * @param {unknown} value
 * @returns {Check[]}
 */
function toOff(value) {
  const checks = /** @type {Check[]} */ (Object.keys(CHECKS));
  if (typeof value === 'boolean') return value ? [] : checks;
  if (!isTable(value)) throw badValue('validate', value, 'true, false, or an object such as { trustProxy: false }');
  checkNames('validate', Object.keys(value), checks);
  for (const [check, isOn] of Object.entries(value)) {
    if (typeof isOn !== 'boolean') throw badValue(`validate.${check}`, isOn, 'true or false');
  }
  return checks.filter((check) => value[check] === false);
}

/**
 * @param {string} code
 * @param {string} text
 * @param {string} [detail]
 */
function emit(code, text, detail) {
  const message = `${text} (see dthrottle/docs/node.md#${code.toLowerCase()})`;
  const options = { type: 'DthrottleWarning', code, detail };
  if (typeof process === 'object' && typeof process.emitWarning === 'function') {
    process.emitWarning(message, options);
  } else {
    console.warn(`[${code}] ${message}`);
  }
}

/** Forgets all reports, for tests. */
function forget() {
  reported.clear();
  reportedInHandlers.clear();
}

exports.CHECKS = CHECKS;
exports.Reports = Reports;
exports.forget = forget;
