// Decides which values can be tags. tests/vectors/tags.json has the cases.
'use strict';

const { describe, isBytes } = require('../api/values.js');

/** The kinds of results of the option `tag`, as `webDecide` accepts them (surface.d.ts). */
const ADDRESS = 0;
const VALUE = 1;
const MISSING = 2;
const UNUSABLE = 3;
const FAILED = 4;

/**
 * A value as a tag, or null if it cannot be one. A number becomes its digits.
 * @param {unknown} value
 * @returns {string | Uint8Array | null}
 */
function toTag(value) {
  if (typeof value === 'string') return value !== '' && value.isWellFormed() ? value : null;
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return String(value);
  return isBytes(value) && value.length > 0 ? value : null;
}

/**
 * The description of an unusable value in messages. Text is not quoted, because clients choose it.
 * @param {unknown} value
 */
const toKind = (value) => (typeof value === 'string' ? 'other text' : describe(value));

module.exports = { ADDRESS, FAILED, MISSING, UNUSABLE, VALUE, toKind, toTag };
