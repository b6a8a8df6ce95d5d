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

/** The prototype of the last request, the same for all of an application, and what it has. */
let last = { kind: {}, app: /** @type {any} */ (undefined), hasUsualIp: false };

/**
 * Whether Express would say, after it has read X-Forwarded-For, that nobody is trusted, and the
 * client is the peer. It takes as long over that as everything here. An application may have an `ip`
 * of its own.
 * @param {any} request
 */
function isDirect(request) {
  const kind = Object.getPrototypeOf(request);
  if (kind !== last.kind) last = { kind, app: kind?.app, hasUsualIp: hasUsualIp(kind) };
  const { app, hasUsualIp: usual } = last;
  return usual && app?.settings?.['trust proxy'] === false && !Object.hasOwn(request, 'ip');
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
