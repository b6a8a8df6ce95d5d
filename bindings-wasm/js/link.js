// Links connect a throttle to its cluster without sockets. The host carries the datagrams and calls `timeout`.
// `links.d.ts` documents them.
'use strict';

const { attempt, badArgument } = require('./api/errors.js');
const { describe, fromJson, isBytes, toOptions, toText } = require('./api/values.js');

/** @import { EventOutput, LinkOptions, TimeoutOutput, TransmitOutput } from './links.js' */

/** @typedef {typeof import('./dthrottle.js')} Glue The script of wasm-bindgen. */

const LINK_OPTIONS = ['address', 'seed', 'incarnation'];
const SEED_BYTES = 8;

/**
 * A 64-bit number, or undefined.
 * @param {string} name
 * @param {unknown} value
 */
function toUint64(name, value) {
  if (value === undefined) return undefined;
  if (typeof value === 'bigint' && value === BigInt.asUintN(64, value)) return value;
  throw badArgument(`\`${name}\` must be a bigint from 0n to 2n ** 64n - 1n, got ${describe(value)}`);
}

/**
 * A seed from random bytes, or as a number.
 * @param {unknown} seed
 */
function toSeed(seed) {
  if (!isBytes(seed)) return toUint64('seed', seed);
  if (seed.length !== SEED_BYTES) throw badArgument(`\`seed\` must have ${SEED_BYTES} bytes, got ${seed.length}`);
  return seed.reduce((word, byte) => (word << 8n) | BigInt(byte), 0n);
}

/**
 * @param {unknown} datagram
 * @returns {Uint8Array}
 */
function toDatagram(datagram) {
  if (isBytes(datagram)) return datagram;
  throw badArgument(`\`datagram\` must be a Uint8Array, got ${describe(datagram)}`);
}

/**
 * @param {unknown} addresses
 * @returns {string[]}
 */
function toAddresses(addresses) {
  if (Array.isArray(addresses)) return Array.from(addresses, (one) => toText('addresses', one));
  throw badArgument(`\`addresses\` must be a list of strings, got ${describe(addresses)}`);
}

/**
 * Returns a function that adds the method `link` to a prototype of throttles.
 * @param {Glue} glue
 * @returns {(throttle: object, partsOf: (throttle: any) => any) => void}
 */
function makeAddLink(glue) {
  // A native link is opaque for this class.
  const wasm = /** @type {any} */ (glue);

  class Link {
    #parts;
    #link;

    /**
     * @param {any} parts The parts of the throttle.
     * @param {LinkOptions} options
     */
    constructor(parts, options) {
      const { address, seed, incarnation } = toOptions(options, LINK_OPTIONS);
      const own = toText('address', address);
      const seedNumber = toSeed(seed);
      const incarnationNumber = toUint64('incarnation', incarnation);
      this.#parts = parts;
      const { handle } = parts.present();
      this.#link = attempt(() => wasm.newLink(handle, own, seedNumber, incarnationNumber));
    }

    /**
     * @param {string} from
     * @param {Uint8Array} datagram
     */
    receive(from, datagram) {
      const address = toText('from', from);
      const bytes = toDatagram(datagram);
      const link = this.#linkNow();
      attempt(() => wasm.receiveLink(link, address, bytes));
    }

    timeout() {
      const link = this.#linkNow();
      attempt(() => wasm.timeoutLink(link));
    }

    /** @returns {TransmitOutput | EventOutput | TimeoutOutput} */
    poll() {
      const link = this.#linkNow();
      const output = attempt(() => wasm.pollLink(link));
      if (typeof output === 'number') return { timeoutMs: output };
      if (typeof output === 'string') return { event: fromJson(output) };
      const [datagram, ...to] = output;
      return { to: to[0] === 'group' ? 'group' : to, datagram };
    }

    /** @param {string[]} addresses */
    join(addresses) {
      const all = toAddresses(addresses);
      const link = this.#linkNow();
      attempt(() => wasm.joinLink(link, all));
    }

    leave() {
      const link = this.#linkNow();
      attempt(() => wasm.leaveLink(link));
    }

    /** Returns the native link, after setting the throttle's clock to the present time. */
    #linkNow() {
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

module.exports = { makeAddLink };
