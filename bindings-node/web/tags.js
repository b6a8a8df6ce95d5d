// Which values can be tags, and tags of clients that are known by their addresses: in a form that
// no other client can have.
'use strict';

const { KeptBytes, isBytes } = require('../face/values.js');

/** @import { ClientAddress } from './address.js' */

/** How many tags are kept. Most requests come from few clients at a time. */
const KEPT = 1024;

/** Tags of clients that are seen by their own addresses, kept for those that come again. */
class KeptTags {
  #address;
  /** @type {Map<unknown, Uint8Array | null>} */
  #kept = new Map();

  /** @param {ClientAddress} address */
  constructor(address) {
    this.#address = address;
  }

  /** @param {string | undefined} peer */
  of(peer) {
    const known = this.#kept.get(peer);
    if (known !== undefined) return known;
    const found = this.#address.tag(peer);
    const tag = found && KeptBytes.keep(found);
    if (this.#kept.size >= KEPT) this.#kept.clear();
    this.#kept.set(peer, tag);
    return tag;
  }
}

/**
 * Begins the tag of a client that is counted by address because it has no usable tag of its own. No
 * text contains the last byte in UTF-8, so no client can choose such a tag.
 */
const BY_ADDRESS = Uint8Array.of(...new TextEncoder().encode('address'), 0xff);

/**
 * The tag of all clients whose address is not known. Clients that left before they were asked about
 * are among them: to leave early must not be free.
 */
const UNKNOWN = addressTag(new Uint8Array());

/**
 * The tag of a client that has no usable tag of its own.
 * @param {Uint8Array} address
 */
function addressTag(address) {
  const tag = new Uint8Array(BY_ADDRESS.length + address.length);
  tag.set(BY_ADDRESS);
  tag.set(address, BY_ADDRESS.length);
  return tag;
}

/**
 * The address that a tag of ours was made of; null: of none.
 * @param {Uint8Array} tag
 */
function toAddress(tag) {
  const isAddress = (/** @type {number} */ length) => length === 4 || length === 16;
  if (isAddress(tag.length)) return tag;
  return isAddress(tag.length - BY_ADDRESS.length) ? tag.subarray(BY_ADDRESS.length) : null;
}

/**
 * A value as a tag; null if it cannot be one. tests/vectors/tags.json has the rules case by case.
 * @param {unknown} value
 * @returns {string | Uint8Array | null}
 */
function toTag(value) {
  if (typeof value === 'string') return value !== '' && value.isWellFormed() ? value : null;
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return String(value);
  return (value instanceof Uint8Array || isBytes(value)) && value.length > 0 ? value : null;
}

module.exports = { KeptTags, UNKNOWN, addressTag, toAddress, toTag };
