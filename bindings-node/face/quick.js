// What middleware asks, and no application: the same checks, with answers that are made in less time.
// Most requests pass, and nobody looks at their decision.
'use strict';

const { AT } = require('./records.js');

/** @import { Decision, Domain } from '../index.js' */

/**
 * What the method `check` of domains has, which asks for such an answer. A throttle of another package
 * has none, nor has a check of an application's own.
 */
const QUICK = Symbol('quick');

/** @typedef {Passed | Decided} Answer What a decision has, it, and in `place` the index of the deciding rule (-1: not known). */

/** That somebody passes at once. */
class Passed {
  #nameOf;

  /**
   * @param {ArrayLike<number>} answer As `surface.d.ts` says.
   * @param {(index: number) => string} nameOf The name of a rule.
   */
  constructor(answer, nameOf) {
    this.granted = answer[AT.granted];
    this.resetAfterMs = answer[AT.resetAfterMs];
    this.limit = answer[AT.limit];
    this.remaining = answer[AT.remaining];
    this.balance = answer[AT.balance];
    this.place = answer[AT.deciding];
    this.#nameOf = nameOf;
  }

  /** @param {ArrayLike<number>} answer */
  static is(answer) {
    return answer[AT.allowed] !== 0 && answer[AT.waitMs] === 0 && answer[AT.retryAfterMs] === 0
      && answer[AT.rule] < 0 && answer[AT.dryRun] === 0;
  }

  get deciding() {
    return this.place < 0 ? null : this.#nameOf(this.place);
  }

  get allowed() {
    return true;
  }

  get waitMs() {
    return 0;
  }

  get retryAfterMs() {
    return 0;
  }

  get rule() {
    return null;
  }

  get dryRun() {
    return false;
  }

  /** @returns {Decision} As applications get it. */
  get decision() {
    const { allowed, limit, remaining, balance, granted, waitMs, retryAfterMs, resetAfterMs, dryRun, rule, deciding } = this;
    return { allowed, limit, remaining, balance, granted, waitMs, retryAfterMs, resetAfterMs, dryRun, rule, deciding };
  }
}

/** Any other. */
class Decided {
  /**
   * @param {Decision} decision
   * @param {number} place
   */
  constructor(decision, place) {
    this.granted = decision.granted;
    this.resetAfterMs = decision.resetAfterMs;
    this.limit = decision.limit;
    this.remaining = decision.remaining;
    this.balance = decision.balance;
    this.place = place;
    this.deciding = decision.deciding;
    this.allowed = decision.allowed;
    this.waitMs = decision.waitMs;
    this.retryAfterMs = decision.retryAfterMs;
    this.rule = decision.rule;
    this.dryRun = decision.dryRun;
    this.decision = decision;
  }
}

/**
 * Asks as `check` does.
 * @param {Domain} domain
 * @param {string | Uint8Array} tag
 * @param {number} cost
 * @param {number} maxWaitMs
 * @returns {Answer}
 */
function ask(domain, tag, cost, maxWaitMs) {
  const quick = /** @type {any} */ (domain.check)[QUICK];
  if (quick !== undefined) return quick(domain, tag, cost, maxWaitMs);
  return new Decided(domain.check(tag, maxWaitMs > 0 ? { cost, maxWaitMs } : cost), -1);
}

module.exports = { Decided, Passed, QUICK, ask };
