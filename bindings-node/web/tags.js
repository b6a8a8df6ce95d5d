// Which values can be tags. tests/vectors/tags.json has the rules case by case.
'use strict';

const { describe, isBytes } = require('../api/values.js');

/** What the option `tag` gave, as `webDecide` takes it (surface.d.ts). */
const ADDRESS = 0;
const VALUE = 1;
const MISSING = 2;
const UNUSABLE = 3;
const FAILED = 4;

/**
 * A value as a tag; null if it cannot be one. A number is counted as its digits.
 * @param {unknown} value
 * @returns {string | Uint8Array | null}
 */
function toTag(value) {
  if (typeof value === 'string') return value !== '' && value.isWellFormed() ? value : null;
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return String(value);
  return isBytes(value) && value.length > 0 ? value : null;
}

/**
 * What a value is called that cannot be a tag: not the text itself, which clients choose.
 * @param {unknown} value
 */
const toKind = (value) => (typeof value === 'string' ? 'other text' : describe(value));

module.exports = { ADDRESS, FAILED, MISSING, UNUSABLE, VALUE, toKind, toTag };
