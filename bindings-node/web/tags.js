// Tags of clients that are known by their addresses: in a form that nobody else can have.
'use strict';

const { KeptBytes } = require('../face/values.js');

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
 * Before the address of a client that sent no header: no header can have a NUL, so nobody can
 * pretend to be it.
 */
const NO_HEADER = new TextEncoder().encode('address\0');
/**
 * Clients that left before they were asked about, all of them: to leave early must not be free.
 * With a NUL, and longer than IPv4: nobody else's header or address.
 */
const GONE = new TextEncoder().encode('gone\0');

/**
 * The tag of a client that sent no header.
 * @param {Uint8Array} address
 */
function withoutHeader(address) {
  const marked = new Uint8Array(NO_HEADER.length + address.length);
  marked.set(NO_HEADER);
  marked.set(address, NO_HEADER.length);
  return marked;
}

/**
 * The address that a tag of ours was made of; null: of none.
 * @param {Uint8Array} tag
 */
function toAddress(tag) {
  const isAddress = (/** @type {number} */ length) => length === 4 || length === 16;
  if (isAddress(tag.length)) return tag;
  return isAddress(tag.length - NO_HEADER.length) ? tag.subarray(NO_HEADER.length) : null;
}

module.exports = { GONE, KeptTags, toAddress, withoutHeader };
