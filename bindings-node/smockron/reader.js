// Reads a request for the gatekeeper: the tag that is counted, and the text that the master may log.
//
// The rules of tags are those of the web adapters (web/tags.js). A master identifies clients by
// bytes, so a tag is converted to bytes once, and the gatekeeper remembers clients by the same bytes.
'use strict';

const { describe } = require('../api/values.js');
const { toKind, toTag } = require('../web/tags.js');
const { Reports } = require('../web/validate.js');

/** @import { IncomingMessage } from 'node:http' */
/** @import { GatekeeperCounts } from './index.js' */

/** The longest tag and the longest log text, in bytes. A master closes connections or drops messages above 64 KB. */
const MAX_BYTES = 1024;
/** The maximum number of UTF-8 bytes for one UTF-16 unit. */
const UNIT_BYTES = 3;
const BAD_TAG = `tag must return text (not empty, valid Unicode), bytes or a whole number, of at most ${MAX_BYTES} bytes`;

/**
 * Begins the tag of a client that is counted by address because it has no usable tag. No text contains the
 * last byte in UTF-8, so no client can choose such a tag.
 */
const BY_ADDRESS = Buffer.from('address\xff', 'latin1');

const encoder = new TextEncoder();

class Reader {
  #tag;
  #logInfo;
  #counts;
  /** @type {import('../web/address.js').ClientAddress | undefined} */
  #addresses;
  #reports = new Reports(false);

  /**
   * @param {(request: any) => unknown} tag
   * @param {((request: any) => unknown) | undefined} logInfo
   * @param {GatekeeperCounts} counts
   */
  constructor(tag, logInfo, counts) {
    this.#tag = tag;
    this.#logInfo = logInfo;
    this.#counts = counts;
  }

  /**
   * The tag that is counted. Null if the application chose the default tag and the address of the
   * client is unknown.
   * @param {IncomingMessage} request
   * @returns {Uint8Array | null}
   */
  tag(request) {
    const value = this.#call('tag', this.#tag, request);
    const bytes = toBytes(value);
    if (bytes !== null) return bytes;
    if (this.#tag === defaultTag && value === undefined) return null;
    this.#counts.untagged += 1;
    this.#reports.failure('DTHROTTLE_NO_TAG', 'tag', `${BAD_TAG}, got ${toKind(value)}; the client is counted by its address`);
    return this.#byAddress(request);
  }

  /**
   * @param {IncomingMessage} request
   * @returns {Uint8Array | undefined}
   */
  logInfo(request) {
    if (this.#logInfo === undefined) return undefined;
    const value = this.#call('logInfo', this.#logInfo, request);
    if (value === undefined || value === null || value === '') return undefined;
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') return cut(String(value));
    this.#failed('logInfo', new TypeError(`logInfo must return text or a number, got ${describe(value)}`));
    return undefined;
  }

  /**
   * The tag of a client that has no usable tag of its own. No client can choose such a tag.
   * @param {IncomingMessage & { ip?: string }} request
   */
  #byAddress(request) {
    // Loaded only when needed, because it loads the addon.
    this.#addresses ??= new (require('../web/address.js').ClientAddress)();
    const address = this.#addresses.tag(request.ip) ?? this.#addresses.tag(request.socket?.remoteAddress);
    return Buffer.concat([BY_ADDRESS, address ?? new Uint8Array()]);
  }

  /**
   * Calls a function of the application; undefined if it throws.
   * @param {string} option
   * @param {(request: any) => unknown} fn
   * @param {IncomingMessage} request
   */
  #call(option, fn, request) {
    try {
      return fn(request);
    } catch (error) {
      this.#failed(option, error);
      return undefined;
    }
  }

  /**
   * Counts an error. The first one of each option is reported.
   * @param {string} option
   * @param {unknown} error
   */
  #failed(option, error) {
    this.#counts.failed += 1;
    this.#reports.failed(option, error);
  }
}

/**
 * The default tag, the client's address: by the rules of Express (`trust proxy`), or the peer.
 * @param {IncomingMessage & { ip?: string }} request
 */
function defaultTag(request) {
  const address = request.ip ?? request.socket?.remoteAddress;
  return address?.replace(/^::ffff:(?=\d+\.)/i, '');
}

/**
 * A value as the bytes of a tag; null if it cannot be a tag, or is too long.
 * @param {unknown} value
 * @returns {Uint8Array | null}
 */
function toBytes(value) {
  const tag = toTag(value);
  // Every UTF-16 unit has at least one byte, so a long text need not be converted.
  if (tag === null || tag.length > MAX_BYTES) return null;
  // A copy, because ZeroMQ sends it later, and the application may change the bytes.
  const bytes = typeof tag === 'string' ? encoder.encode(tag) : Uint8Array.from(tag);
  return bytes.length <= MAX_BYTES ? bytes : null;
}

/**
 * The bytes of a tag as text, one character for each byte: a key of a Map.
 * @param {Uint8Array} bytes
 */
function toKey(bytes) {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

/**
 * The first bytes of a text in UTF-8, up to the last character that fits.
 * @param {string} text
 */
function cut(text) {
  const bytes = new Uint8Array(Math.min(MAX_BYTES, UNIT_BYTES * text.length));
  return bytes.subarray(0, encoder.encodeInto(text, bytes).written);
}

module.exports = { MAX_BYTES, Reader, defaultTag, toBytes, toKey };
