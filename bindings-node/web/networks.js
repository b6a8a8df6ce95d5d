// Lists of networks, to look addresses up in.
'use strict';

const { wrong } = require('./near.js');
const { formatAddress, parse4, parse6, unmapped } = require('./parse.js');

/**
 * @typedef {object} Network
 * @property {Uint8Array} address
 * @property {number} bits
 */

class Networks {
  /** In a list of trusted proxies: whether who connects to a Unix socket is one. */
  unix = false;
  /** @type {Network[]} */
  #networks = [];

  /**
   * @param {readonly unknown[]} networks
   * @param {string} option Where they were given.
   */
  constructor(networks, option) {
    for (const network of networks) {
      if (network === 'unix' || network === 'unix:') this.unix = true;
      else this.#networks.push(toNetwork(network, option));
    }
  }

  get isEmpty() {
    return !this.unix && this.#networks.length === 0;
  }

  /** @param {Uint8Array} address */
  has(address) {
    return this.#networks.some((network) => contains(network, address));
  }
}

/**
 * @param {Network} network
 * @param {Uint8Array} address
 */
function contains({ address: base, bits }, address) {
  if (base.length !== address.length) return false;
  const whole = bits >> 3;
  for (let i = 0; i < whole; i += 1) if (base[i] !== address[i]) return false;
  return bits % 8 === 0 || (base[whole] ^ address[whole]) >> (8 - (bits % 8)) === 0;
}

/**
 * @param {unknown} text
 * @param {string} option
 * @returns {Network}
 */
function toNetwork(text, option) {
  if (typeof text !== 'string') throw wrong(option, text, 'text such as "10.0.0.0/8"');
  const [, written, length] = /^([^/%]*)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const address = written === undefined ? null : (parse4(written) ?? parse6(written));
  const all = address === null ? 0 : 8 * address.length;
  const bits = length === undefined ? all : Number(length);
  if (address === null || bits > all) {
    throw wrong(option, text, 'an address or a network such as "10.0.0.0/8"');
  }
  const base = address.map((byte, i) => byte & (0xff00 >> Math.min(8, Math.max(0, bits - 8 * i))));
  const network = toShort({ address: base, bits });
  // Not before: all of IPv4 may be written as a part of IPv6.
  if (network.bits === 0) throw wrong(option, text, 'smaller; with everyone trusted a client can be anyone');
  if (base.some((byte, i) => byte !== address[i])) {
    throw wrong(option, text, `"${formatAddress(base)}/${bits}"`);
  }
  return network;
}

/**
 * The network of IPv4 that one of IPv6 stands for.
 * @param {Network} network
 * @returns {Network}
 */
function toShort({ address, bits }) {
  const short = bits < 96 ? address : unmapped(address);
  return { address: short, bits: bits - 8 * (address.length - short.length) };
}

exports.Networks = Networks;
