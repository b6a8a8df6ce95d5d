// Reads Node's own requests.
'use strict';

/** @import { IncomingMessage } from 'node:http' */
/** @import { Reader } from './gate.js' */

/**
 * @param {string | undefined} url
 * @returns {string}
 */
function toPath(url = '') {
  const path = url.split('?', 1)[0];
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/**
 * One text of what may be several lines.
 * @param {string | string[] | undefined} value
 */
const joined = (value) => (Array.isArray(value) ? value.join(', ') : value);

/** @type {Reader} */
const nodeReader = {
  method: (/** @type {IncomingMessage} */ request) => request.method ?? '',
  path: (/** @type {IncomingMessage} */ request) => toPath(request.url),
  // One that is sent twice is none: which of the two the application reads is not known here.
  header(/** @type {IncomingMessage} */ request, name) {
    const lines = request.headersDistinct[name];
    return lines?.length === 1 ? lines[0] : undefined;
  },
  peer: (/** @type {IncomingMessage} */ request) => request.socket?.remoteAddress,
  client: (/** @type {IncomingMessage} */ request) => request.socket?.remoteAddress,
  forwardedFor: (/** @type {IncomingMessage} */ request) => joined(request.headers['x-forwarded-for']),
};

module.exports = { nodeReader, toPath };
