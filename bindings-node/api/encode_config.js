// Encodes a configuration object as a list of strings, which the native part reads (`src/common/tree.rs` describes the
// format). The object is read here, because its getters may throw any error.
'use strict';

const { describe, isBytes, isPlain, isTable } = require('./values.js');

/** This limit stops cycles. A valid configuration has at most 5 levels. */
const MAX_DEPTH = 16;
/** More than any valid configuration has, because core accepts 1,000 rules in all. */
const MAX_VALUES = 100_000;

/**
 * @param {unknown} config
 * @returns {string[]}
 */
function encode(config) {
  /** @type {string[]} */
  const encoded = [];
  let left = MAX_VALUES;

  /**
   * Returns whether `count` more values fit. If not, writes a value that core rejects, naming the field.
   * @param {number} count
   * @param {number} depth
   */
  function fits(count, depth) {
    if (depth < MAX_DEPTH && count <= left) {
      left -= count;
      return true;
    }
    // The letter `o` means another type. Its description follows.
    encoded.push(depth < MAX_DEPTH ? 'oso large an object' : 'oso deep an object');
    return false;
  }

  /**
   * @param {unknown} value
   * @param {number} depth
   */
  function write(value, depth) {
    if (typeof value === 'number') {
      encoded.push(`n${value}`);
    } else if (typeof value === 'string') {
      encoded.push(`s${value}`);
    } else if (typeof value === 'boolean') {
      encoded.push(`b${value}`);
    } else if (typeof value === 'function') {
      encoded.push('f');
    } else if (isBytes(value)) {
      encoded.push(`x${Array.from(value, (byte) => byte.toString(16).padStart(2, '0')).join('')}`);
    } else if (Array.isArray(value)) {
      const { length } = value;
      // The length of a Proxy may be any value.
      if (!fits(Number.isSafeInteger(length) && length >= 0 ? length : Infinity, depth)) return;
      encoded.push(`l${length}`);
      // Iterates by index up to the length that was written, because holes count as values.
      for (let i = 0; i < length; i += 1) write(value[i], depth + 1);
    } else if (isTable(value)) {
      const entries = Object.entries(value).filter(([, member]) => member !== undefined);
      if (entries.length === 0 && !isPlain(value)) {
        // An instance of a class, such as a clock, is not an empty list of options.
        encoded.push('oan object without keys of its own');
        return;
      }
      if (!fits(entries.length, depth)) return;
      encoded.push(`t${entries.length}`);
      for (const [key, member] of entries) {
        encoded.push(key);
        write(member, depth + 1);
      }
    } else {
      encoded.push(`o${describe(value)}`);
    }
  }

  write(config, 0);
  return encoded;
}

module.exports = { encode };
