// Checks and converts arguments of any type: tags, numbers, options; and describes them in messages.
'use strict';

const { badArgument } = require('./errors.js');

const LONGEST_QUOTE = 40;

/**
 * The class name of a built-in object, which is the same in other realms.
 * @param {unknown} value
 */
const kindOf = (value) => Object.prototype.toString.call(value).slice(8, -1);

/**
 * Whether a value is an object with keys and values, and no array, date, map, ...
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function isTable(value) {
  return typeof value === 'object' && value !== null && kindOf(value) === 'Object';
}

/**
 * Whether a table is an ordinary object, of any realm, and not an instance of a class.
 * @param {object} value
 */
function isPlain(value) {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

const typedArrayKind = /** @type {(this: unknown) => string | undefined} */ (
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)
    ?.get
);

/**
 * Whether a value is a Uint8Array of any realm. A Buffer is one.
 * @param {unknown} value
 * @returns {value is Uint8Array}
 */
const isBytes = (value) => typedArrayKind.call(value) === 'Uint8Array';

/**
 * The description of a value in a message.
 * @param {unknown} value
 * @returns {string}
 */
function describe(value) {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(
        value.length > LONGEST_QUOTE ? `${value.slice(0, LONGEST_QUOTE)}...` : value,
      );
    case 'bigint':
      return 'a bigint';
    case 'symbol':
      return 'a symbol';
    case 'function':
      return 'a function';
    case 'object':
      if (value === null) return 'null';
      if (Array.isArray(value)) return 'a list';
      if (isTable(value)) return 'an object';
      return kindOf(value) === 'Date' ? 'a date' : `an object of kind ${kindOf(value)}`;
    default:
      return String(value);
  }
}

/**
 * A tag for the native part.
 * @param {unknown} tag
 * @returns {string | Uint8Array}
 */
function toTag(tag) {
  if (typeof tag === 'string') return tag;
  if (isBytes(tag)) {
    // An array whose buffer was transferred has the length 0, too, and cannot be copied.
    if (tag.length === 0) return '';
    // No other thread can change or resize the copy while it is read.
    return new Uint8Array(tag);
  }
  throw badArgument(`\`tag\` must be a string or a Uint8Array, got ${describe(tag)}`);
}

/**
 * Tags for the native part, from any iterable except a single tag.
 * @param {unknown} tags
 * @returns {(string | Uint8Array)[]}
 */
function toTags(tags) {
  if (typeof tags === 'object' && tags !== null && Symbol.iterator in tags && !isBytes(tags)) {
    return Array.from(/** @type {Iterable<unknown>} */ (tags), (tag) => toTag(tag));
  }
  throw badArgument(
    `\`tags\` must be an iterable of strings and Uint8Arrays, got ${describe(tags)}`,
  );
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {number}
 */
function toNumber(name, value) {
  if (typeof value === 'number') return value;
  throw badArgument(`\`${name}\` must be a number, got ${describe(value)}`);
}

/**
 * A whole number, 0 or more.
 * @param {string} name
 * @param {unknown} value
 * @returns {number}
 */
function toCount(name, value) {
  if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value);
  throw badArgument(`\`${name}\` must be a whole number, 0 or more, got ${describe(value)}`);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {string}
 */
function toText(name, value) {
  if (typeof value === 'string') return value;
  throw badArgument(`\`${name}\` must be a string, got ${describe(value)}`);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {boolean}
 */
function toTruth(name, value) {
  if (typeof value === 'boolean') return value;
  throw badArgument(`\`${name}\` must be true or false, got ${describe(value)}`);
}

/**
 * Parses JSON of core, and converts its keys to camel case.
 * @param {string} json
 */
function fromJson(json) {
  return JSON.parse(json, (_, value) => (isTable(value) ? Object.fromEntries(Object.entries(value).map(camel)) : value));
}

/** @param {[string, unknown]} entry */
function camel([key, value]) {
  return [key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()), value];
}

/**
 * The own properties of an object of options. Throws an error about an unknown one.
 * @param {unknown} options
 * @param {readonly string[]} known
 * @returns {Record<string, unknown>}
 */
function toOptions(options, known) {
  if (options === undefined) return {};
  if (!isTable(options)) throw badArgument(`\`options\` must be an object, got ${describe(options)}`);
  const own = Object.assign(Object.create(null), options);
  for (const name of Object.keys(own)) {
    if (!known.includes(name)) {
      throw badArgument(`unknown option ${describe(name)}; known options are ${known.join(', ')}`);
    }
  }
  return own;
}

module.exports = { describe, fromJson, isBytes, isPlain, isTable, toCount, toNumber, toOptions, toTag, toTags, toText, toTruth };
