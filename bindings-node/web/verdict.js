// What becomes of a request.
'use strict';

const { RateLimitInfo } = require('./info.js');

/** @import { Answer } from '../face/quick.js' */
/** @import { Fields } from './headers.js' */

class Verdict {
  /** @type {RateLimitInfo | null} */
  #info = null;
  #isOurs;
  /** When it was decided, where that may be a while ago. */
  #at;

  /**
   * @param {Answer} answer
   * @param {Fields} fields
   * @param {string | Uint8Array} tag
   * @param {boolean} isOurs Whether a tag of bytes was made of an address, not by the application.
   * @param {number} taken
   * @param {boolean} refused
   */
  constructor(answer, fields, tag, isOurs, taken, refused) {
    this.answer = answer;
    this.fields = fields;
    this.tag = tag;
    this.#isOurs = isOurs;
    // Few look at others, and to ask for the time takes about as long as a check: it is that of the look.
    this.#at = refused || answer.waitMs > 0 ? Date.now() : undefined;
    /** Units that were taken, which a refund gives back. */
    this.taken = taken;
    this.refused = refused;
  }

  /** For how long to hold the request. */
  get waitMs() {
    return this.answer.waitMs;
  }

  /** As the application gets it. */
  get decision() {
    return this.info.decision;
  }

  /** What the application is told, made when it looks: few look. */
  get info() {
    return (this.#info ??= new RateLimitInfo(this.answer, this.tag, this.#isOurs, this.#at ?? Date.now()));
  }
}

exports.Verdict = Verdict;
