// What becomes of a request.
'use strict';

const { RateLimitInfo } = require('./info.js');

/** @import { Decision } from '../index.js' */
/** @import { Fields } from './headers.js' */

class Verdict {
  /** @type {RateLimitInfo | null} */
  #info = null;
  #isOurs;
  #at;

  /**
   * @param {Decision} decision
   * @param {Fields} fields
   * @param {string | Uint8Array} tag
   * @param {boolean} isOurs Whether a tag of bytes was made of an address, not by the application.
   * @param {number} taken
   * @param {boolean} refused
   */
  constructor(decision, fields, tag, isOurs, taken, refused) {
    this.decision = decision;
    this.fields = fields;
    this.tag = tag;
    this.#isOurs = isOurs;
    this.#at = Date.now();
    /** Units that were taken, which a refund gives back. */
    this.taken = taken;
    this.refused = refused;
  }

  /** For how long to hold the request. */
  get waitMs() {
    return this.decision.waitMs;
  }

  /** What the application is told, made when it looks: few look. */
  get info() {
    return (this.#info ??= new RateLimitInfo(this.decision, this.tag, this.#isOurs, this.#at));
  }
}

exports.Verdict = Verdict;
