// The addon, for this platform, as the native part that the face needs (`surface.d.ts`).
'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');

/** @import { Busy, Clock, Handle, Native, Seat, Tag } from './surface.js' */

/**
 * @typedef {Omit<Native, 'check' | 'peek'> & Record<'check' | 'peek', Ask> & Warnings} Addon
 * @typedef {{ warnings(handle: Handle): string[], busyWarnings(handle: Busy): string[] }} Warnings
 *   What is not as it was asked for.
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
    check(seat, tag, cost, maxWaitMs, partial) {
      if (maxWaitMs !== undefined || partial !== undefined) {
        addon.check(seat, tag, buffer, cost, maxWaitMs, partial);
      } else if (cost !== undefined) addon.check(seat, tag, buffer, cost);
      else addon.check(seat, tag, buffer);
      return answer;
    },
    peek(seat, tag, cost, maxWaitMs, partial) {
      if (maxWaitMs !== undefined || partial !== undefined) {
        addon.peek(seat, tag, buffer, cost, maxWaitMs, partial);
      } else if (cost !== undefined) addon.peek(seat, tag, buffer, cost);
      else addon.peek(seat, tag, buffer);
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
