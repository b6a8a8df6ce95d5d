// What middleware asks, and no application: the same checks, with answers that are made in less time.
// Most requests pass, and nobody looks at their decision.
'use strict';

/** @import { Decision, Domain } from '../index.js' */

/**
 * What the method `check` of domains has, which asks for such an answer. A throttle of another package
 * has none, nor has a check of an application's own.
 */
const QUICK = Symbol('quick');

/** @typedef {Passed | Decided} Answer What a decision has, it, and the index of the rule that these figures are of (-1: not known). */

/** That somebody passes at once. */
class Passed {
  /** @param {ArrayLike<number>} answer As `surface.d.ts` says. */
  constructor(answer) {
    this.granted = answer[1];
    this.resetAfterMs = answer[4];
    this.limit = answer[5];
    this.remaining = answer[6];
    this.balance = answer[7];
    this.deciding = answer[10];
  }

  /** @param {ArrayLike<number>} answer */
  static is(answer) {
    return answer[0] !== 0 && answer[2] === 0 && answer[3] === 0 && answer[8] < 0 && answer[9] === 0;
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
    const { allowed, granted, waitMs, retryAfterMs, resetAfterMs, limit, remaining, balance, rule, dryRun } = this;
    return { allowed, granted, waitMs, retryAfterMs, resetAfterMs, limit, remaining, balance, rule, dryRun };
  }
}

/** Any other. */
class Decided {
  /**
   * @param {Decision} decision
   * @param {number} deciding
   */
  constructor(decision, deciding) {
    this.granted = decision.granted;
    this.resetAfterMs = decision.resetAfterMs;
    this.limit = decision.limit;
    this.remaining = decision.remaining;
    this.balance = decision.balance;
    this.deciding = deciding;
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
