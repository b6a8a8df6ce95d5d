// Who is the client? Its address, as a tag that it cannot choose for itself.
//
//     clientAddress('10.0.0.1', '6.6.6.6, 203.0.113.7', { trustedProxies: ['10.0.0.0/8'] })
//
// The rules are core's: docs/http.md explains them, tests/vectors/addresses.json has the cases. Mistakes in
// what an application says are errors at once; what a request says never is.
'use strict';

const { attempt } = require('../api/errors.js');
const { toOptions } = require('../api/values.js');
const { encode } = require('../api/encode_config.js');
const { loadForPlatform } = require('../native.js');
const { wrong } = require('./errors.js');

/** @import { ClientAddressOptions, Forwarded } from './address.js' */

const native = loadForPlatform();

/** Finds the client behind trusted proxies. */
class ClientAddress {
  #rules;

  /** @param {ClientAddressOptions} [options] */
  constructor(options) {
    const given = { ...toOptions(options, ['trustedProxies', 'ipv6Prefix']) };
    // Core takes it for an option that is not given; here it is rather a setting that was not found.
    if (given.trustedProxies === null) throw wrong('trustedProxies', null, 'a number of proxies, or a list of their networks');
    const words = encode(given);
    this.#rules = attempt(() => native.newClientAddress(words));
  }

  /**
   * The tag of whoever sent a request.
   * @param {unknown} peer
   * @param {Forwarded} [forwardedFor]
   * @returns {Uint8Array | null}
   */
  tag(peer, forwardedFor) {
    return toBytes(native.findClient(this.#rules, toText(peer), toLines(forwardedFor), true));
  }

  /**
   * The whole address, not cut to its prefix.
   * @param {unknown} peer
   * @param {Forwarded} [forwardedFor]
   * @returns {Uint8Array | null}
   */
  find(peer, forwardedFor) {
    return toBytes(native.findClient(this.#rules, toText(peer), toLines(forwardedFor), false));
  }
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
 * An address in any spelling, as 4 or 16 bytes; null if it is none.
 * @param {unknown} text
 * @returns {Uint8Array | null}
 */
function parseAddress(text) {
  return typeof text === 'string' ? toBytes(native.parseAddress(text)) : null;
}

/**
 * Bytes of the addon, without what a Buffer does otherwise.
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
