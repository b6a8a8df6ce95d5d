// The addon, for this platform, as the native part that the face needs (`surface.d.ts`).
'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');

/** @import { Native, Seat, Tag } from './surface.js' */

/**
 * @typedef {Omit<Native, 'check' | 'peek'> & Record<'check' | 'peek', Ask>} Addon
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
  return {
    ...addon,
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
