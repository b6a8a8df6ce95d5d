// A configuration object as a list of words, which the native part reads (`src/common/tree.rs`
// says what they mean). The object is walked here, where its getters may throw what they like.
'use strict';

const { describe, isBytes, isPlain, isTable } = require('./values.js');

/** No configuration is deeper than 5 levels: this only stops circles. */
const DEEPEST = 16;
/** Nor larger than this: core takes 1000 rules in all. */
const MOST_VALUES = 100_000;

/**
 * @param {unknown} config
 * @returns {string[]}
 */
function encode(config) {
  /** @type {string[]} */
  const words = [];
  let left = MOST_VALUES;

  /**
   * Whether so many values still fit; if not, a word that core refuses, with the field, is written.
   * @param {number} count
   * @param {number} depth
   */
  function fits(count, depth) {
    if (depth < DEEPEST && count <= left) {
      left -= count;
      return true;
    }
    words.push(depth < DEEPEST ? 'oso large an object' : 'oso deep an object');
    return false;
  }

  /**
   * @param {unknown} value
   * @param {number} depth
   */
  function write(value, depth) {
    if (typeof value === 'number') {
      words.push(`n${value}`);
    } else if (typeof value === 'string') {
      words.push(`s${value}`);
    } else if (typeof value === 'boolean') {
      words.push(`b${value}`);
    } else if (typeof value === 'function') {
      words.push('f');
    } else if (isBytes(value)) {
      words.push(`x${Array.from(value, (byte) => byte.toString(16).padStart(2, '0')).join('')}`);
    } else if (Array.isArray(value)) {
      const { length } = value;
      // The length that a proxy gives may be anything.
      if (!fits(Number.isSafeInteger(length) && length >= 0 ? length : Infinity, depth)) return;
      words.push(`l${length}`);
      // By index, to the length that was written: holes are values too.
      for (let i = 0; i < length; i += 1) write(value[i], depth + 1);
    } else if (isTable(value)) {
      const entries = Object.entries(value).filter(([, member]) => member !== undefined);
      if (entries.length === 0 && !isPlain(value)) {
        // A throttle, a clock, an object whose keys are all inherited: not a wish for no rules.
        words.push('oan object without keys of its own');
        return;
      }
      if (!fits(entries.length, depth)) return;
      words.push(`t${entries.length}`);
      for (const [key, member] of entries) {
        words.push(key);
        write(member, depth + 1);
      }
    } else {
      words.push(`o${describe(value)}`);
    }
  }

  write(config, 0);
  return words;
}

module.exports = { encode };
