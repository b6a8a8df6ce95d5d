// Loads the addon for this platform. `surface.d.ts` describes its functions.
'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');

/** @import { Busy, Handle, Native, Tag, Web } from './surface.js' */

/**
 * @typedef {Omit<Native, 'allow' | 'check' | 'peek' | 'webDecide' | 'webAnswer'> & HotCalls & Warnings & Addresses} Addon
 * @typedef {object} HotCalls Functions that read most arguments from the buffer (`src/hot.rs`).
 * @property {(tag: Tag) => false | undefined} allow Undefined if allowed, because that is faster to return.
 * @property {(tag: Tag) => void} check
 * @property {(tag: Tag) => void} peek
 * @property {(peer?: string, client?: string, forwarded?: string, tag?: Tag) => string | undefined} webDecide
 * @property {ArrayBuffer} buffer
 * @typedef {object} Warnings The warnings of a throttle or middleware that was opened.
 * @property {(handle: Handle) => string[]} warnings
 * @property {(handle: Busy) => string[]} busyWarnings
 * @property {(web: Web) => string[]} webThrottleWarnings
 * @typedef {object} Addresses Functions of Node only: addresses of clients, and names of applications.
 * @property {(encoded: string[]) => object} newClientAddress
 * @property {(rules: object, peer: string | undefined, forwarded: string[], isTag: boolean) => Uint8Array | null | undefined} findClient
 * @property {(text: string) => Uint8Array | null | undefined} parseAddress
 * @property {(shown: string[], identity: string[]) => string} applicationTable
 */

/**
 * The layout of the buffer. The hot calls read all arguments except most tags from it, and write decisions to it.
 * The first 8 bytes are two integers, an id and flags. `src/hot.rs` has the same layout and flags.
 */
const COST = 1;
const MAX_DELAY_MS = 2;
const DECISION = 3;

/** Flags of `allow`, `check` and `peek`. Bytes as a tag are passed as a latin1 string. */
const TAG_IS_BYTES = 1;
const PARTIAL = 2;
const ALLOW_DEBT = 4;

/** Flags of `webDecide`, in addition to the kind of the tag: which arguments are given. */
const HAS_PEER = 2 ** 3;
const HAS_CLIENT = 2 ** 4;
const HAS_FORWARDED = 2 ** 5;
const HAS_TAG = 2 ** 6;
const HAS_COST = 2 ** 7;
const IS_GONE = 2 ** 8;

/** The longest tag that is passed as a latin1 string. */
const MAX_LATIN1_BYTES = 100;

const { latin1Slice } = Buffer.prototype;

/**
 * Whether a tag is passed as a latin1 string, which the addon reads faster than the memory of an array.
 * @param {Tag} tag
 * @returns {tag is Uint8Array}
 */
const isShortBytes = (tag) => typeof tag !== 'string' && tag.length <= MAX_LATIN1_BYTES;

/** @param {readonly string[]} texts */
const warn = (texts) => texts.forEach((text) => process.emitWarning(text, 'DthrottleWarning'));

/**
 * Calls `open`, and emits the warnings of what it opened. WebAssembly has none.
 * @template {unknown[]} T
 * @template H
 * @param {(...given: T) => H} open
 * @param {(handle: H) => string[]} warningsOf
 * @returns {(...given: T) => H}
 */
function withWarnings(open, warningsOf) {
  return (...given) => {
    const handle = open(...given);
    warn(warningsOf(handle));
    return handle;
  };
}

/**
 * Loads an addon file.
 * @param {string} path
 * @returns {Native & Addresses}
 */
function load(path) {
  const { buffer, ...addon } = /** @type {Addon} */ (require(path));
  const numbers = new Float64Array(buffer);
  const integers = new Uint32Array(buffer, 0, 2);
  const decision = numbers.subarray(DECISION);
  const { allow, check, peek, webDecide } = addon;
  /**
   * @param {(tag: Tag) => void} call
   * @returns {Native['check']}
   */
  const withDecision = (call) => (id, tag, cost = 1, maxDelayMs = 0, partial = false, allowDebt = false) => {
    const isShort = isShortBytes(tag);
    integers[0] = /** @type {any} */ (id);
    integers[1] = (isShort ? TAG_IS_BYTES : 0) | (partial ? PARTIAL : 0) | (allowDebt ? ALLOW_DEBT : 0);
    numbers[COST] = cost;
    numbers[MAX_DELAY_MS] = maxDelayMs;
    call(isShort ? latin1Slice.call(tag) : tag);
    return decision;
  };
  return {
    ...addon,
    fromConfig: withWarnings(addon.fromConfig, addon.warnings),
    fromToml: withWarnings(addon.fromToml, addon.warnings),
    fromFile: withWarnings(addon.fromFile, addon.warnings),
    busyFromConfig: withWarnings(addon.busyFromConfig, addon.busyWarnings),
    webOpen: withWarnings(addon.webOpen, addon.webThrottleWarnings),
    webAnswer: decision,
    // Reading nine arguments by napi took 2.5 us of a request to Express.
    webDecide(id, peer, client, forwarded, kind, tag, cost, isGone) {
      let flags = kind;
      if (peer !== undefined) flags |= HAS_PEER;
      if (client !== undefined) flags |= HAS_CLIENT;
      if (forwarded !== undefined) flags |= HAS_FORWARDED;
      if (tag !== undefined) flags |= HAS_TAG;
      if (isGone) flags |= IS_GONE;
      if (cost !== undefined) {
        flags |= HAS_COST;
        numbers[COST] = cost;
      }
      integers[0] = /** @type {any} */ (id);
      integers[1] = flags;
      return webDecide(peer, client, forwarded, tag);
    },
    allow(id, tag, cost = 1) {
      const isShort = isShortBytes(tag);
      integers[0] = /** @type {any} */ (id);
      integers[1] = isShort ? TAG_IS_BYTES : 0;
      numbers[COST] = cost;
      return allow(isShort ? latin1Slice.call(tag) : tag) === undefined;
    },
    check: withDecision(check),
    peek: withDecision(peek),
  };
}

/** @returns {Native & Addresses} */
function loadForPlatform() {
  const file = `dthrottle.${process.platform}-${process.arch}.node`;
  const path = join(__dirname, file);
  if (!existsSync(path)) {
    throw new Error(
      `dthrottle: ${path} does not exist; in a checkout, make build-node builds it; ` +
        'in a bundle, mark dthrottle as external (esbuild --external:dthrottle), because it has a native part',
    );
  }
  return load(path);
}

module.exports = { load, loadForPlatform };
