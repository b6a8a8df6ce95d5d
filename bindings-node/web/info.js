// What the application finds at its requests.
'use strict';

/** @import { Native } from '../surface.js' */
/** @import { Outcome } from './hold.js' */

/** In `tagKind`: the tag is what the application gave. */
const GIVEN = 0;

/**
 * Its own fields are those that users of express-rate-limit know, and no others: they are what is
 * listed, copied and sent as JSON.
 */
class RateLimitInfo {
  #outcome;
  #native;

  /**
   * @param {Outcome} outcome
   * @param {Native} native
   */
  constructor(outcome, native) {
    const { limit, remaining, balance, resetAfterMs } = outcome.decision;
    this.limit = limit;
    // Without rules, all is Infinity.
    this.used = Math.max(0, limit - balance) || 0;
    this.remaining = remaining;
    /** When the bucket is full again. */
    this.resetTime = new Date(Date.now() + resetAfterMs);
    /** Who was counted, as people write it. */
    this.key = copy(outcome.tag);
    this.#outcome = outcome;
    this.#native = native;
  }

  get decision() {
    return this.#outcome.decision;
  }

  /** The tag itself, which the calls of a throttle take: an address is bytes. */
  get tag() {
    const { tag, tagKind } = this.#outcome;
    return tagKind === GIVEN ? copy(tag) : this.#native.webTag(tagKind, tag);
  }
}

/** @param {string | Uint8Array} tag */
const copy = (tag) => (typeof tag === 'string' ? tag : new Uint8Array(tag));

exports.GIVEN = GIVEN;
exports.RateLimitInfo = RateLimitInfo;
