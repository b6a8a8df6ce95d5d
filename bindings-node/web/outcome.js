// The decision about one request, read from the numbers that `webDecide` writes.
'use strict';

const { AT, NUMBERS, toDecision } = require('../api/records.js');

/** Indexes of the numbers that follow those of the decision. They must match `src/common/web.rs`. */
const ACTION = NUMBERS;
const DELAY_MS = NUMBERS + 1;
const TAKEN = NUMBERS + 2;
const TAG_KIND = NUMBERS + 3;
const HAS_WARNINGS = NUMBERS + 4;
const ADDRESS_LENGTH = NUMBERS + 5;
const HAS_FIELDS = NUMBERS + 6;

const PASS = 0;
const REFUSE = 2;

class Outcome {
  /**
   * @param {ArrayLike<number>} numbers
   * @param {(index: number) => string} nameOf Returns the name of a rule.
   * @param {readonly string[]} values The values of the header fields.
   * @param {string | Uint8Array} tag The application's text or bytes, or an address as text.
   */
  constructor(numbers, nameOf, values, tag) {
    this.decision = toDecision(numbers, nameOf);
    this.values = values;
    this.tag = tag;
    this.tagKind = numbers[TAG_KIND];
    this.refused = numbers[ACTION] === REFUSE;
    /** The time by which to delay the request or its refusal. */
    this.delayMs = numbers[ACTION] === PASS ? 0 : numbers[DELAY_MS];
    this.taken = numbers[TAKEN];
    this.rule = numbers[AT.rule];
    /** When the decision was made, in milliseconds since 1970. */
    this.at = Date.now();
  }
}

exports.ADDRESS_LENGTH = ADDRESS_LENGTH;
exports.HAS_FIELDS = HAS_FIELDS;
exports.HAS_WARNINGS = HAS_WARNINGS;
exports.Outcome = Outcome;
exports.TAG_KIND = TAG_KIND;
