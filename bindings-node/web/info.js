// What the application finds at a request that was asked about.
'use strict';

const { KeptBytes } = require('../face/values.js');
const { formatAddress } = require('./parse.js');
const { toAddress } = require('./tags.js');

/** @import { Answer } from '../face/quick.js' */
/** @import { Decision } from '../index.js' */

/**
 * Its own fields are those that users of express-rate-limit know, and no others: they are what is
 * listed, copied and sent as JSON.
 */
class RateLimitInfo {
  #answer;
  /** @type {Decision | undefined} */
  #decision;
  #tag;

  /**
   * @param {Answer} answer
   * @param {string | Uint8Array} tag
   * @param {boolean} isOurs Whether bytes were made of an address, not by the application.
   * @param {number} at From when the time is reckoned, in milliseconds since 1970.
   */
  constructor(answer, tag, isOurs, at) {
    const { limit, remaining } = answer;
    this.limit = limit;
    // Without rules, all is Infinity.
    this.used = Math.max(0, limit - answer.balance) || 0;
    this.remaining = remaining;
    /** When the bucket is full again. */
    this.resetTime = new Date(at + answer.resetAfterMs);
    /** Who was counted, as people write it. */
    this.key = typeof tag === 'string' ? tag : toKey(tag, isOurs);
    this.#answer = answer;
    this.#tag = tag;
  }

  get decision() {
    return (this.#decision ??= this.#answer.decision);
  }

  /** The tag itself. Of bytes a copy: a refund still needs them, and so may other requests. */
  get tag() {
    return typeof this.#tag === 'string' ? this.#tag : copied(this.#tag);
  }
}

/**
 * An address as text; other bytes as they are.
 * @param {Uint8Array} tag
 * @param {boolean} isOurs
 */
function toKey(tag, isOurs) {
  if (isOurs && tag instanceof KeptBytes) return tag.written(formatAddress);
  const address = isOurs ? toAddress(tag) : null;
  return address === null ? copied(tag) : formatAddress(address);
}

/** @param {Uint8Array} tag Empty also when its buffer was given away, and cannot be copied. */
const copied = (tag) => (tag.length === 0 ? '' : new Uint8Array(tag));

exports.RateLimitInfo = RateLimitInfo;
