// Reports of misuse and failure: each once, as a warning of the process with a code, which
// docs/node.md explains. Nothing here throws, and nothing is said twice.
'use strict';

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

/** How deep frameworks call. */
const DEEPEST = 60;
/** Where Node hands a request on: whoever has it below is within a handler. */
const HANDLER = /\bparserOnIncoming\b/;

/** @type {Set<string>} Misuse that was reported in this process: every middleware may have the same. */
const said = new Set();

/** @type {Map<string, Set<string>>} What was said by middleware that is made for every request, by the place that makes it. */
const saidInHandlers = new Map();

/** Reports of one middleware. */
class Reports {
  /** @type {Set<string>} */
  #said = new Set();
  #off;

  /** @param {ReadonlySet<string>} off The checks that are turned off. */
  constructor(off) {
    this.#off = off;
  }

  /**
   * Whether a check is still worth making.
   * @param {Check} check
   */
  wants(check) {
    return !this.#off.has(check) && !this.#said.has(CHECKS[check]);
  }

  /**
   * Reports misuse.
   * @param {Check} check
   * @param {string} message
   */
  misuse(check, message) {
    if (!this.wants(check)) return;
    const code = CHECKS[check];
    this.#said.add(code);
    if (said.has(`${code} ${message}`)) return;
    said.add(`${code} ${message}`);
    say(code, message);
  }

  /**
   * Reports what went wrong.
   * @param {'DTHROTTLE_FAILED' | 'DTHROTTLE_NO_TAG'} code
   * @param {string} cause
   * @param {string} message
   * @param {unknown} [error]
   */
  failure(code, cause, message, error) {
    if (this.#said.has(`${code} ${cause}`)) return;
    this.#said.add(`${code} ${cause}`);
    say(code, `${message}; this is reported once, and counted`, error instanceof Error ? error.stack : undefined);
  }

  /** Says so when a middleware is made within a handler. */
  lookAtStack() {
    if (!this.wants('createdInHandler')) return;
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = DEEPEST;
    const { stack = '' } = new Error();
    Error.stackTraceLimit = limit;
    if (!HANDLER.test(stack)) return;
    const place = stack.split('\n').slice(1).find((line) => !line.includes(__dirname)) ?? '';
    this.#said = saidInHandlers.get(place) ?? this.#said;
    saidInHandlers.set(place, this.#said);
    this.misuse(
      'createdInHandler',
      'this middleware was made while a request was handled; make it once, where the application starts',
    );
  }
}

/**
 * @param {string} code
 * @param {string} text
 * @param {string} [detail]
 */
function say(code, text, detail) {
  const message = `${text} (docs/node.md#${code.toLowerCase()})`;
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
