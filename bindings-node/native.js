// The addon, for this platform, as the native part that the face needs (`surface.d.ts`).
'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');

/** @import { Busy, Clock, Handle, Native, Seat, Tag } from './surface.js' */

/**
 * @typedef {Omit<Native, 'allow' | 'check' | 'peek'> & { allow: Allow } & Record<'check' | 'peek', Ask> & Warnings} Addon
 * @typedef {{ warnings(handle: Handle): string[], busyWarnings(handle: Busy): string[] }} Warnings
 *   What is not as it was asked for.
 * @typedef {(seat: Seat, tag: Tag, cost?: number) => false | undefined} Allow Undefined for yes:
 *   that is quicker to say.
 * @typedef {(
 *   seat: Seat,
 *   tag: Tag,
 *   answer: ArrayBuffer,
 *   cost?: number,
 *   maxWaitMs?: number,
 *   partial?: boolean,
 * ) => void} Ask The addon writes its answer into memory: making values is slow there, and so is
 *   finding out that an argument is undefined.
 */

/** In the number of a seat: the tag is a string whose units are bytes. */
const BYTES = 2 ** 30;
/** Longer ones go as they are. */
const MOST_BYTES = 100;

const { latin1Slice } = Buffer.prototype;

/**
 * Bytes as a string: the addon is slow to get at the memory of an array that it sees for the first
 * time. Who gives bytes gives the seat that says so.
 * @param {Tag} tag
 * @returns {Tag}
 */
const toUnits = (tag) => (typeof tag !== 'string' && tag.length <= MOST_BYTES ? latin1Slice.call(tag) : tag);

/**
 * @param {Seat} seat
 * @param {Tag} tag
 * @returns {Seat}
 */
function toSeat(seat, tag) {
  if (typeof tag === 'string' || tag.length > MOST_BYTES) return seat;
  return /** @type {any} */ (/** @type {any} */ (seat) + BYTES);
}

/**
 * Loads an addon file.
 * @param {string} path
 * @returns {Native}
 */
function load(path) {
  /** @type {Addon} */
  const addon = require(path);
  const answer = new Float64Array(10);
  const { buffer } = answer;
  /**
   * Opens with warnings. In WebAssembly there is nothing to warn of.
   * @template T
   * @param {(source: T, clock: Clock | undefined) => Handle} open
   * @returns {(source: T, clock: Clock | undefined) => Handle}
   */
  const aloud = (open) => (source, clock) => {
    const handle = open(source, clock);
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
    allow(seat, tag, cost) {
      const place = toSeat(seat, tag);
      const who = toUnits(tag);
      const refused = cost === undefined ? addon.allow(place, who) : addon.allow(place, who, cost);
      return refused === undefined;
    },
    check(seat, tag, cost, maxWaitMs, partial) {
      const place = toSeat(seat, tag);
      const who = toUnits(tag);
      if (partial !== undefined) addon.check(place, who, buffer, cost, maxWaitMs, partial);
      else if (maxWaitMs !== undefined) addon.check(place, who, buffer, cost ?? 1, maxWaitMs);
      else if (cost !== undefined) addon.check(place, who, buffer, cost);
      else addon.check(place, who, buffer);
      return answer;
    },
    peek(seat, tag, cost, maxWaitMs, partial) {
      const place = toSeat(seat, tag);
      const who = toUnits(tag);
      if (partial !== undefined) addon.peek(place, who, buffer, cost, maxWaitMs, partial);
      else if (maxWaitMs !== undefined) addon.peek(place, who, buffer, cost ?? 1, maxWaitMs);
      else if (cost !== undefined) addon.peek(place, who, buffer, cost);
      else addon.peek(place, who, buffer);
      return answer;
    },
  };
}

/** @returns {Native} */
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
