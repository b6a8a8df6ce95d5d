// Who is the client? Its address, as a tag that it cannot choose for itself.
//
//     clientAddress('10.0.0.1', '6.6.6.6, 203.0.113.7', { trustedProxies: ['10.0.0.0/8'] })
//
// The rules are in docs/node.md, and in numbers in tests/vectors/addresses.json. Mistakes in what an
// application says are errors at once; what a request says never is.
'use strict';

const { toOptions } = require('../face/values.js');
const { Networks } = require('./networks.js');
const { wrong } = require('./near.js');
const { parseAddress } = require('./parse.js');

/** @import { ClientAddressOptions, Forwarded } from './address.js' */

/** Finds the client behind trusted proxies. */
class ClientAddress {
  /** @type {number} */
  #count = 0;
  /** @type {Networks | undefined} */
  #networks;
  /** @type {number} */
  #prefix;

  /** @param {ClientAddressOptions} [options] */
  constructor(options) {
    const { trustedProxies = 0, ipv6Subnet = 64 } = toOptions(options, ['trustedProxies', 'ipv6Subnet']);
    this.#prefix = toPrefix(ipv6Subnet);
    if (Array.isArray(trustedProxies)) {
      const networks = new Networks(trustedProxies, 'trustedProxies');
      if (!networks.isEmpty) this.#networks = networks;
    } else {
      this.#count = toProxies(trustedProxies);
    }
  }

  /**
   * The tag of whoever sent a request.
   * @param {unknown} peer
   * @param {Forwarded} [forwardedFor]
   * @returns {Uint8Array | null}
   */
  tag(peer, forwardedFor) {
    return this.#cut(this.find(peer, forwardedFor));
  }

  /**
   * The whole address, not cut to its prefix.
   * @param {unknown} peer
   * @param {Forwarded} [forwardedFor]
   * @returns {Uint8Array | null}
   */
  find(peer, forwardedFor) {
    const address = parseAddress(peer);
    if (this.#count > 0) return this.#byCount(address, forwardedFor);
    return this.#networks ? byNetworks(this.#networks, address, forwardedFor) : address;
  }

  /**
   * Every trusted proxy added one entry: so many are to be believed, and what is left of them is
   * the client's own invention. One that is no address leaves us with the last that is.
   * @param {Uint8Array | null} address
   * @param {Forwarded} forwardedFor
   */
  #byCount(address, forwardedFor) {
    const entries = toEntries(forwardedFor).slice(-this.#count);
    for (const entry of entries.reverse()) address = parseAddress(entry) ?? address;
    return address;
  }

  /** @param {Uint8Array | null} address */
  #cut(address) {
    if (address === null || address.length === 4 || this.#prefix === 128) return address;
    const whole = this.#prefix >> 3;
    const tag = new Uint8Array(16);
    tag.set(address.subarray(0, whole));
    if (this.#prefix % 8) tag[whole] = address[whole] & (0xff00 >> this.#prefix % 8);
    return tag;
  }
}

/**
 * @param {Networks} networks
 * @param {Uint8Array | null} address
 * @param {Forwarded} forwardedFor
 */
function byNetworks(networks, address, forwardedFor) {
  if (address === null ? !networks.unix : !networks.has(address)) return address;
  for (const entry of toEntries(forwardedFor).reverse()) {
    const parsed = parseAddress(entry);
    // Nobody knows who that is: the last known one answers for it.
    if (parsed === null) break;
    address = parsed;
    if (!networks.has(address)) break;
  }
  return address;
}

/**
 * The client's address as a tag, or null if nothing of it is known. To ask often, make a
 * ClientAddress once.
 * @param {unknown} peer
 * @param {Forwarded} [forwardedFor]
 * @param {ClientAddressOptions} [options]
 */
function clientAddress(peer, forwardedFor, options) {
  return new ClientAddress(options).tag(peer, forwardedFor);
}

/**
 * All entries from left to right; empty ones are none.
 * @param {unknown} forwardedFor
 * @returns {string[]}
 */
function toEntries(forwardedFor) {
  const lines = Array.isArray(forwardedFor) ? forwardedFor : [forwardedFor];
  return lines
    .filter((line) => typeof line === 'string')
    .flatMap((line) => line.split(','))
    .filter((entry) => /[^ \t]/.test(entry));
}

/** @param {unknown} count */
function toProxies(count) {
  const whole = Number.isInteger(count) ? Number(count) : NaN;
  if (whole >= 0) return whole;
  const right = whole < 0 ? '0 or more proxies' : 'a number of proxies, or a list of their networks';
  throw wrong('trustedProxies', count, right);
}

/** @param {unknown} prefix */
function toPrefix(prefix) {
  if (Number.isInteger(prefix) && Number(prefix) >= 1 && Number(prefix) <= 128) return Number(prefix);
  throw wrong('ipv6Subnet', prefix, 'a number of bits from 1 to 128');
}

module.exports = { ClientAddress, clientAddress, parseAddress };
