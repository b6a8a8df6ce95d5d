// The addon, for this platform, as the native part that the face needs (`surface.d.ts`).
'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');

/** @import { Busy, Handle, Native, Seat, Tag, Web } from './surface.js' */

/**
 * @typedef {Omit<Native, 'allow' | 'check' | 'peek' | 'webDecide' | 'webAnswer'> & { allow: Allow, webDecide: Decide, sheet: ArrayBuffer } & Record<'check' | 'peek', Ask> & Warnings & Addresses} Addon
 * @typedef {{ warnings(handle: Handle): string[], busyWarnings(handle: Busy): string[], webThrottleWarnings(web: Web): string[] }} Warnings
 *   What is not as it was asked for.
 * @typedef {object} Addresses What only Node has: addresses of clients, and the names of applications.
 * @property {(words: string[]) => object} newClientAddress
 * @property {(rules: object, peer: string | undefined, forwarded: string[], isTag: boolean) => Uint8Array | null | undefined} findClient
 * @property {(text: string) => Uint8Array | null | undefined} parseAddress
 * @property {(shown: string[], identity: string[]) => string} applicationTable
 * @typedef {(tag: Tag) => false | undefined} Allow Undefined for yes: that is quicker to say.
 * @typedef {(tag: Tag) => void} Ask
 * @typedef {(peer?: string, client?: string, forwarded?: string, tag?: Tag) => string | undefined} Decide
 */

/**
 * What is where on the sheet, the memory by which the hot calls are told all but most tags, and answer:
 * making and reading values is slow in the addon. In its first place are whole numbers: the seat, and
 * the length of a tag that is there, too. `src/hot.rs` has the same.
 */
const COST = 1;
const MAX_WAIT_MS = 2;
const PARTIAL = 3;
const ALLOW_DEBT = 4;
const DECISION = 5;

/** In the number of a seat: the tag is a string whose units are bytes. */
const BYTES = 2 ** 30;
/** In the number of a seat, where only a cost can be told: it is on the sheet. */
const PRICED = 2 ** 29;
/** What there is for `webDecide`, in the second whole number: behind the kind of the tag. */
const PEER = 2 ** 3;
const CLIENT = 2 ** 4;
const FORWARDED = 2 ** 5;
const TAG = 2 ** 6;
const OWN_COST = 2 ** 7;
const IS_GONE = 2 ** 8;
/** Longer ones go as they are. */
const MOST_BYTES = 100;

const { latin1Slice } = Buffer.prototype;

/**
 * Bytes as a string: the addon is slow to get at the memory of an array that it sees for the first
 * time. Who gives bytes gives the seat that says so.
 * @param {Tag} tag
 * @returns {Tag}
 */
function toUnits(tag) {
  if (typeof tag === 'string') return tag;
  return tag.length > MOST_BYTES ? tag : latin1Slice.call(tag);
}

/**
 * @param {Seat} seat
 * @param {Tag} tag
 * @returns {number}
 */
function toSeat(seat, tag) {
  const number = /** @type {number} */ (/** @type {unknown} */ (seat));
  return typeof tag === 'string' || tag.length > MOST_BYTES ? number : number + BYTES;
}

/**
 * Loads an addon file.
 * @param {string} path
 * @returns {Native & Addresses}
 */
function load(path) {
  const { sheet: memory, ...addon } = /** @type {Addon} */ (require(path));
  const sheet = new Float64Array(memory);
  const place = new Uint32Array(memory, 0, 2);
  const decision = sheet.subarray(DECISION);
  const { allow, check, peek, webDecide } = addon;
  /**
   * @param {number} seat
   * @param {number} [cost]
   * @param {number} [maxWaitMs]
   * @param {boolean} [partial]
   * @param {boolean} [allowDebt]
   */
  function write(seat, cost = 1, maxWaitMs = 0, partial = false, allowDebt = false) {
    place[0] = seat;
    sheet[COST] = cost;
    sheet[MAX_WAIT_MS] = maxWaitMs;
    sheet[PARTIAL] = partial ? 1 : 0;
    sheet[ALLOW_DEBT] = allowDebt ? 1 : 0;
  }
  /**
   * Opens with warnings. In WebAssembly there is nothing to warn of.
   * @template {unknown[]} T
   * @param {(...given: T) => Handle} open
   * @returns {(...given: T) => Handle}
   */
  const aloud = (open) => (...given) => {
    const handle = open(...given);
    for (const text of addon.warnings(handle)) process.emitWarning(text, 'DthrottleWarning');
    return handle;
  };
  return {
    ...addon,
    fromWords: aloud(addon.fromWords),
    fromToml: aloud(addon.fromToml),
    fromFile: aloud(addon.fromFile),
    busyFromWords(words, clock) {
      const handle = addon.busyFromWords(words, clock);
      for (const text of addon.busyWarnings(handle)) process.emitWarning(text, 'DthrottleWarning');
      return handle;
    },
    webOpen(...given) {
      const web = addon.webOpen(...given);
      for (const text of addon.webThrottleWarnings(web)) process.emitWarning(text, 'DthrottleWarning');
      return web;
    },
    webAnswer: decision,
    // Nine arguments read by napi took 2.5 us of a request to Express.
    webDecide(number, peer, client, forwarded, kind, tag, cost, isGone) {
      let there = kind;
      if (peer !== undefined) there |= PEER;
      if (client !== undefined) there |= CLIENT;
      if (forwarded !== undefined) there |= FORWARDED;
      if (tag !== undefined) there |= TAG;
      if (isGone) there |= IS_GONE;
      if (cost !== undefined) {
        there |= OWN_COST;
        sheet[COST] = cost;
      }
      place[0] = /** @type {number} */ (/** @type {unknown} */ (number));
      place[1] = there;
      return webDecide(peer, client, forwarded, tag);
    },
    allow(seat, tag, cost) {
      const number = toSeat(seat, tag);
      if (cost === undefined) {
        place[0] = number;
      } else {
        place[0] = number + PRICED;
        sheet[COST] = cost;
      }
      return allow(toUnits(tag)) === undefined;
    },
    check(seat, tag, cost, maxWaitMs, partial, allowDebt) {
      write(toSeat(seat, tag), cost, maxWaitMs, partial, allowDebt);
      check(toUnits(tag));
      return decision;
    },
    peek(seat, tag, cost, maxWaitMs, partial, allowDebt) {
      write(toSeat(seat, tag), cost, maxWaitMs, partial, allowDebt);
      peek(toUnits(tag));
      return decision;
    },
  };
}

/** @returns {Native & Addresses} */
function loadForPlatform() {
  const file = `dthrottle.${process.platform}-${process.arch}.node`;
  const path = join(__dirname, file);
  if (!existsSync(path)) {
    throw new Error(
      `dthrottle: ${file} is missing from the package; in a checkout, make build-node builds it`,
    );
  }
  return load(path);
}

module.exports = { load, loadForPlatform };
