// Reports of misuse and failure: each once, as a warning of the process with a code, which
// docs/node.md explains. Nothing here throws, and nothing is said twice.
'use strict';

const { describe, isTable } = require('../api/values.js');
const { known, wrong } = require('./errors.js');

/**
 * What is looked for, by the name that the option `validate` turns it off by. Failures are not
 * among them: they are always reported.
 */
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

/** A table that is not what was asked for, as core says it. */
const TABLE = 'DTHROTTLE_TABLE';

/** How deep frameworks call. */
const DEEPEST = 60;
/** Where Node hands a request on: whoever has it below is within a handler. */
const HANDLER = /\bparserOnIncoming\b/;

/** What is wrong shows in any request, or never. */
const WATCHED = 100;

/** @type {Set<string>} What was reported in this process: every middleware may have the same. */
const said = new Set();

/** @type {Map<string, Set<string>>} What was said by middleware that is made for every request, by the place that makes it. */
const saidInHandlers = new Map();

/** @type {WeakMap<object, Set<string>>} In which buckets a request was counted. */
const counted = new WeakMap();

/** @type {WeakMap<object, number>} Tables without a name, told apart. */
const places = new WeakMap();
let lastPlace = 0;

/** Reports of one middleware. */
class Reports {
  /** @type {Set<string>} */
  #said = new Set();
  /** @type {Set<string>} The codes that are turned off. */
  #off;
  #left = WATCHED;

  /**
   * @param {unknown} [validate] The option.
   * @param {boolean} [isPrivate] Whether the middleware has a table of its own.
   */
  constructor(validate = true, isPrivate = false) {
    this.#off = new Set(toOff(validate).map((check) => CHECKS[check]));
    this.#lookAtStack(isPrivate);
  }

  /** Whether to look at a request; only the first ones are looked at. */
  get isWatching() {
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  /**
   * Reports what core has found.
   * @param {string} code
   * @param {string} message
   */
  warn(code, message) {
    const isMisuse = Object.values(CHECKS).some((check) => check === code);
    // The middleware of a process with one table all have the same to say of it.
    if (isMisuse || code === TABLE) this.#misuse(code, message);
    else this.#say(code, message, message);
  }

  /**
   * Reports misuse, if there is some.
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
    if (this.#off.has(code) || this.#said.has(code) || said.has(`${code} ${message}`)) return;
    said.add(`${code} ${message}`);
    this.#say(code, '', message);
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
    this.#say(code, cause, `${message}; this is reported once, and counted`, error instanceof Error ? error.stack : undefined);
  }

  /**
   * @param {string} code
   * @param {string} cause Each once.
   * @param {string} message
   * @param {string} [detail]
   */
  #say(code, cause, message, detail) {
    const key = `${code} ${cause}`.trim();
    if (this.#said.has(key)) return;
    this.#said.add(key);
    say(code, message, detail);
  }

  /**
   * Reports a request that is counted twice.
   * @param {any} request
   * @param {string | object} table Its name; or what else is another for each table.
   * @param {string} domain
   * @param {string} tag
   */
  counted(request, table, domain, tag) {
    if (this.#off.has(CHECKS.doubleCount)) return;
    const key = JSON.stringify([typeof table === 'string' ? table : toPlace(table), domain, tag]);
    const buckets = counted.get(request) ?? new Set();
    counted.set(request, buckets);
    if (buckets.has(key)) {
      this.misuse(
        'doubleCount',
        `a request was counted twice in domain '${domain}': is the middleware there twice, or is ` +
          'there another with the same rules? Give each a domain of its own',
      );
    }
    buckets.add(key);
  }

  /**
   * Reports a middleware that is made within a handler.
   * @param {boolean} isPrivate
   */
  #lookAtStack(isPrivate) {
    if (this.#off.has(CHECKS.createdInHandler)) return;
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = DEEPEST;
    const { stack = '' } = new Error();
    Error.stackTraceLimit = limit;
    if (!HANDLER.test(stack)) return;
    const place = stack.split('\n').slice(1).find((line) => !line.includes(__dirname)) ?? '';
    this.#said = saidInHandlers.get(place) ?? this.#said;
    saidInHandlers.set(place, this.#said);
    const effect = isPrivate ? ': with table: false, each has an empty table and refuses nobody' : '';
    this.misuse(
      'createdInHandler',
      `this middleware was made while a request was handled; make it once, where the application starts${effect}`,
    );
  }
}

/** @param {object} table */
function toPlace(table) {
  const place = places.get(table);
  if (place !== undefined) return place;
  lastPlace += 1;
  places.set(table, lastPlace);
  return lastPlace;
}

/**
 * The checks that are turned off.
 * @param {unknown} value
 * @returns {Check[]}
 */
function toOff(value) {
  const checks = /** @type {Check[]} */ (Object.keys(CHECKS));
  if (typeof value === 'boolean') return value ? [] : checks;
  if (!isTable(value)) throw wrong('validate', value, 'true, false, or an object such as { trustProxy: false }');
  known('validate', Object.keys(value), checks);
  for (const [check, on] of Object.entries(value)) {
    if (typeof on !== 'boolean') throw wrong(`validate.${check}`, on, 'true or false');
  }
  return checks.filter((check) => value[check] === false);
}

/**
 * @param {string} code
 * @param {string} text
 * @param {string} [detail]
 */
function say(code, text, detail) {
  const message = `${text} (see dthrottle/docs/node.md#${code.toLowerCase()})`;
  const options = { type: 'DthrottleWarning', code, detail };
  if (typeof process === 'object' && typeof process.emitWarning === 'function') {
    process.emitWarning(message, options);
  } else {
    console.warn(`[${code}] ${message}`);
  }
}

/** As if nothing had been said, for tests. */
function forget() {
  said.clear();
  saidInHandlers.clear();
}

exports.CHECKS = CHECKS;
exports.Reports = Reports;
exports.forget = forget;
