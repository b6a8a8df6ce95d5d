// The addon, for this platform, as the native part that the face needs (`surface.d.ts`).
'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');

/** @import { Native, Handle, Tag } from './surface.js' */

/**
 * @typedef {Omit<Native, 'check' | 'peek'> & Record<'check' | 'peek', Ask>} Addon
 * @typedef {(
 *   handle: Handle,
 *   tag: Tag,
 *   cost: number | undefined,
 *   maxWaitMs: number | undefined,
 *   partial: boolean | undefined,
 *   answer: Float64Array,
 * ) => void} Ask The addon writes its answer into an array: making values is slow there.
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
  return {
    ...addon,
    check(handle, tag, cost, maxWaitMs, partial) {
      addon.check(handle, tag, cost, maxWaitMs, partial, answer);
      return answer;
    },
    peek(handle, tag, cost, maxWaitMs, partial) {
      addon.peek(handle, tag, cost, maxWaitMs, partial, answer);
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
