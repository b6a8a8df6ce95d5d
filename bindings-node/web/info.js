// What the application finds at a request that was asked about.
'use strict';

/** @import { Decision } from '../index.js' */

class RateLimitInfo {
  /**
   * @param {Decision} decision
   * @param {string | Uint8Array} key
   */
  constructor(decision, key) {
    this.decision = decision;
    /** The tag. */
    this.key = key;
  }

  get limit() {
    return this.decision.limit;
  }

  get used() {
    return Math.max(0, this.decision.limit - this.decision.balance);
  }

  get remaining() {
    return this.decision.remaining;
  }

  /** When the bucket is full again. */
  get resetTime() {
    return new Date(Date.now() + this.decision.resetAfterMs);
  }
}

module.exports = { RateLimitInfo };
