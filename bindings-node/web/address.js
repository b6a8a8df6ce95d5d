// The client's address as a tag, which the client cannot choose.
//
//     clientAddress('10.0.0.1', '6.6.6.6, 203.0.113.7', { trustedProxies: ['10.0.0.0/8'] })
//
// The rules are in core: docs/http.md explains them, and tests/vectors/addresses.json has the cases. Invalid options
// are errors. Invalid content of a request is never an error.
'use strict';

const { attempt } = require('../api/errors.js');
const { toOptions } = require('../api/values.js');
const { encode } = require('../api/encode_config.js');
const { loadForPlatform } = require('../native.js');
const { badValue } = require('./errors.js');

/** @import { ClientAddressOptions, Forwarded } from './address.js' */

const native = loadForPlatform();

/** Finds the client behind trusted proxies. */
class ClientAddress {
  #rules;

  /** @param {ClientAddressOptions} [options] */
  constructor(options) {
    const given = { ...toOptions(options, ['trustedProxies', 'ipv6Prefix']) };
    // Core treats null like a missing option. Here it is more likely the value of a missing setting.
    if (given.trustedProxies === null) throw badValue('trustedProxies', null, 'a number of proxies, or a list of their networks');
    const encoded = encode(given);
    this.#rules = attempt(() => native.newClientAddress(encoded));
  }

  /**
   * The tag of the client that sent a request, or null if its address is unknown.
   * @param {unknown} peer
   * @param {Forwarded} [forwardedFor]
   * @returns {Uint8Array | null}
   */
  tag(peer, forwardedFor) {
    return toBytes(native.findClient(this.#rules, toText(peer), toLines(forwardedFor), true));
  }

  /**
   * The whole address, not shortened to its prefix.
   * @param {unknown} peer
   * @param {Forwarded} [forwardedFor]
   * @returns {Uint8Array | null}
   */
  find(peer, forwardedFor) {
    return toBytes(native.findClient(this.#rules, toText(peer), toLines(forwardedFor), false));
  }
}

/**
 * The client's address as a tag, or null if it is unknown. For many calls, use a ClientAddress.
 * @param {unknown} peer
 * @param {Forwarded} [forwardedFor]
 * @param {ClientAddressOptions} [options]
 */
function clientAddress(peer, forwardedFor, options) {
  return new ClientAddress(options).tag(peer, forwardedFor);
}

/**
 * Parses an address in any spelling. Returns 4 or 16 bytes, or null if the text is no address.
 * @param {unknown} text
 * @returns {Uint8Array | null}
 */
function parseAddress(text) {
  return typeof text === 'string' ? toBytes(native.parseAddress(text)) : null;
}

/**
 * A Buffer of the addon as a Uint8Array, whose methods differ.
 * @param {Uint8Array | null | undefined} bytes
 */
const toBytes = (bytes) => (bytes ? new Uint8Array(bytes) : null);

/** @param {unknown} value */
const toText = (value) => (typeof value === 'string' ? value : undefined);

/**
 * @param {unknown} forwardedFor
 * @returns {string[]}
 */
const toLines = (forwardedFor) => [forwardedFor].flat().filter((line) => typeof line === 'string');

module.exports = { ClientAddress, clientAddress, parseAddress };
