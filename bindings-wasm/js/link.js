// Links: what joins a throttle to its cluster where there are no sockets. The host carries the
// datagrams, and says when time is up. The classes are described for their users in `links.d.ts`.
'use strict';

const { attempt, badArgument } = require('./api/errors.js');
const { describe, fromJson, isBytes, toOptions, toText } = require('./api/values.js');

/** @import { Carried, Happened, Idle, LinkOptions } from './links.js' */

/** @typedef {typeof import('./dthrottle.js')} Glue What wasm-bindgen makes. */

const LINK_OPTIONS = ['address', 'seed', 'incarnation'];
const SEED_BYTES = 8;

/**
 * A number of 64 bits, if one is given.
 * @param {string} name
 * @param {unknown} value
 */
function toWord(name, value) {
  if (value === undefined) return undefined;
  if (typeof value === 'bigint' && value === BigInt.asUintN(64, value)) return value;
  throw badArgument(`${name}: must be a bigint from 0n to 2n ** 64n - 1n, got ${describe(value)}`);
}

/**
 * A seed from the bytes that a source of randomness fills, or as a number.
 * @param {unknown} seed
 */
function toSeed(seed) {
  if (!isBytes(seed)) return toWord('seed', seed);
  if (seed.length !== SEED_BYTES) throw badArgument(`seed: must have ${SEED_BYTES} bytes`);
  return seed.reduce((word, byte) => (word << 8n) | BigInt(byte), 0n);
}

/**
 * @param {unknown} datagram
 * @returns {Uint8Array}
 */
function toDatagram(datagram) {
  if (isBytes(datagram)) return datagram;
  throw badArgument(`datagram: must be a Uint8Array, got ${describe(datagram)}`);
}

/**
 * @param {unknown} addresses
 * @returns {string[]}
 */
function toAddresses(addresses) {
  if (Array.isArray(addresses)) return Array.from(addresses, (one) => toText('addresses', one));
  throw badArgument(`addresses: must be a list of strings, got ${describe(addresses)}`);
}

/**
 * Gives throttles the method `link`.
 * @param {Glue} glue
 * @returns {(throttle: object, partsOf: (throttle: any) => any) => void}
 */
function linksOf(glue) {
  // To this class, a native link is opaque.
  const wasm = /** @type {any} */ (glue);

  class Link {
    #parts;
    #link;

    /**
     * @param {any} parts The throttle's.
     * @param {LinkOptions} options
     */
    constructor(parts, options) {
      const { address, seed, incarnation } = toOptions(options, LINK_OPTIONS);
      const where = toText('address', address);
      const word = toSeed(seed);
      const life = toWord('incarnation', incarnation);
      this.#parts = parts;
      const { handle } = parts.present();
      this.#link = attempt(() => wasm.newLink(handle, where, word, life));
    }

    /**
     * @param {string} from
     * @param {Uint8Array} datagram
     */
    receive(from, datagram) {
      const address = toText('from', from);
      const bytes = toDatagram(datagram);
      const link = this.#present();
      attempt(() => wasm.receiveLink(link, address, bytes));
    }

    timeout() {
      const link = this.#present();
      attempt(() => wasm.timeoutLink(link));
    }

    /** @returns {Carried | Happened | Idle} */
    poll() {
      const link = this.#present();
      const output = attempt(() => wasm.pollLink(link));
      if (typeof output === 'number') return { timeoutMs: output };
      if (typeof output === 'string') return { event: fromJson(output) };
      const [datagram, ...to] = output;
      return { to: to[0] === 'group' ? 'group' : to, datagram };
    }

    /** @param {string[]} addresses */
    join(addresses) {
      const all = toAddresses(addresses);
      const link = this.#present();
      attempt(() => wasm.joinLink(link, all));
    }

    leave() {
      const link = this.#present();
      attempt(() => wasm.leaveLink(link));
    }

    /** The native link, with the throttle's clock at the present time. */
    #present() {
      this.#parts.present();
      return this.#link;
    }
  }

  return (throttle, partsOf) => {
    Object.defineProperty(throttle, 'link', {
      /**
       * @this {object}
       * @param {LinkOptions} options
       */
      value: function link(options) {
        return new Link(partsOf(this), options);
      },
      configurable: true,
      writable: true,
    });
  };
}

module.exports = { linksOf };
