// What the application finds at its requests.
'use strict';

/** @import { Decision } from '../index.js' */

/**
 * Its own fields are those that users of express-rate-limit know, and no others: they are what is
 * listed, copied and sent as JSON.
 */
class RateLimitInfo {
  #decision;
  #toTag;

  /**
   * @param {Decision} decision
   * @param {string | Uint8Array} key
   * @param {() => string | Uint8Array} toTag
   */
  constructor(decision, key, toTag) {
    const { limit, remaining, balance, resetAfterMs } = decision;
    this.limit = limit;
    // Without rules, all is Infinity.
    this.used = Math.max(0, limit - balance) || 0;
    this.remaining = remaining;
    /** When the bucket is full again. */
    this.resetTime = new Date(Date.now() + resetAfterMs);
    /** Who was counted, as people write it. */
    this.key = key;
    this.#decision = decision;
    this.#toTag = toTag;
  }

  get decision() {
    return this.#decision;
  }

  /** The tag itself, which the calls of a throttle take: an address is bytes. */
  get tag() {
    return this.#toTag();
  }
}

exports.RateLimitInfo = RateLimitInfo;
