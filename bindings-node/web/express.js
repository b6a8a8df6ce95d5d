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
  client: (request) => (isDirect(request) ? undefined : request.ip) ?? nodeReader.peer(request),
  trustProxy(request) {
    if (request.app?.get?.('trust proxy') !== true) return undefined;
    return (
      "'trust proxy' is true, so the client's address is what the client says it is: " +
      "set it to the number of proxies or to their networks, or set trustedProxies"
    );
  },
};

/**
 * @typedef {object} Kind
 * @property {object | null} prototype Of requests: the same for all of an application.
 * @property {Record<string, unknown> | undefined} settings The application's.
 * @property {boolean} hasUsualIp Whether their `ip` is Express's own.
 */

/** @type {WeakMap<object, Kind>} By the prototype. */
const kinds = new WeakMap();
/** @type {Kind} That of the last request, which most have. */
let last = { prototype: null, settings: undefined, hasUsualIp: false };

/**
 * @param {any} prototype
 * @returns {Kind}
 */
function toKind(prototype) {
  const known = kinds.get(prototype);
  if (known !== undefined) return known;
  const kind = { prototype, settings: prototype.app?.settings, hasUsualIp: hasUsualIp(prototype) };
  kinds.set(prototype, kind);
  return kind;
}

/**
 * Whether Express would say, after it has read X-Forwarded-For, that nobody is trusted, and the
 * client is the peer. It takes as long over that as everything here. An application may have an `ip`
 * of its own.
 * @param {any} request
 */
function isDirect(request) {
  const prototype = Object.getPrototypeOf(request);
  if (prototype !== last.prototype) last = toKind(prototype);
  const { settings, hasUsualIp: usual } = last;
  return usual && settings?.['trust proxy'] === false && !Object.hasOwn(request, 'ip');
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
