// Middleware for Express 4 and 5, and Connect.
//
//     app.use(throttle('100/s'));
//
// All workers of the application count together, without being told. docs/node.md has the options.
'use strict';

const { toMiddleware } = require('./connect.js');
const { Gate } = require('./gate.js');
const { gather, readOptions } = require('./options.js');
const { nodeReader, toPaths } = require('./reader.js');

/** @import { Reader } from './gate.js' */

/**
 * Express knows the client by `trust proxy`; Connect knows only the peer.
 * @type {Reader}
 */
const reader = {
  ...nodeReader,
  ignoresCase: true,
  paths: (request) => toPaths(request.originalUrl ?? request.url),
  client: (request) => (isDirect(request) ? undefined : request.ip) ?? request.socket?.remoteAddress,
  trustProxy(request) {
    if (request.app?.get?.('trust proxy') !== true) return undefined;
    return (
      "'trust proxy' is true, so the client's address is what the client says it is: " +
      "set it to the number of proxies or to their networks, or set trustedProxies"
    );
  },
};

/** @type {WeakMap<object, boolean>} Kinds of requests, and whether their `ip` is Express's own. */
const kinds = new WeakMap();

/**
 * Whether Express would say, after it has read X-Forwarded-For, that nobody is trusted, and the
 * client is the peer. It takes as long over that as everything here. An application may have an `ip`
 * of its own.
 * @param {any} request
 */
function isDirect(request) {
  if (request.app?.settings?.['trust proxy'] !== false || Object.hasOwn(request, 'ip')) return false;
  const kind = Object.getPrototypeOf(request);
  let usual = kinds.get(kind);
  if (usual === undefined) {
    usual = hasUsualIp(kind);
    kinds.set(kind, usual);
  }
  return usual;
}

/** @param {object} kind */
function hasUsualIp(kind) {
  for (let it = kind; it; it = Object.getPrototypeOf(it)) {
    const found = Object.getOwnPropertyDescriptor(it, 'ip');
    // One that cannot be read, such as a minified one, is taken for another.
    if (found) return /\bproxyaddr\(this, ?trust\)/.test(String(found.get));
  }
  return false;
}

/**
 * @param {unknown} source
 * @param {unknown} [options]
 */
function throttle(source, options) {
  return toMiddleware(new Gate(readOptions(gather(source, options)), reader));
}

module.exports = { throttle };
