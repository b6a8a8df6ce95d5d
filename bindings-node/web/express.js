// Middleware for Express 4 and 5, and Connect.
//
//     app.use(throttle('100/s'));
//
// All workers of the application share one table. docs/node.md has the options.
'use strict';

const { connect } = require('./connect.js');
const { mergeOptions } = require('./options.js');
const { nodeReader, toPaths } = require('./reader.js');
const { withTools } = require('./tools.js');

/** @import { Reader } from './reader.js' */

/**
 * Express finds the client by its setting `trust proxy`. Connect knows only the peer.
 * @type {Reader}
 */
const reader = {
  ...nodeReader,
  ignoresCase: true,
  paths: (request) => toPaths(request.originalUrl ?? request.url),
  client: (request) => (isDirect(request) ? undefined : request.ip),
  trustProxy(request) {
    if (request.app?.get?.('trust proxy') !== true) return undefined;
    return (
      "'trust proxy' is true, so a client can send any address: " +
      "set it to the number of proxies or to their networks, or set trustedProxies"
    );
  },
};

/** The settings of the last application. Cached, because reading it from a request of Express is slow. */
let last = { prototype: null, settings: /** @type {any} */ (undefined), hasIp: false };

/**
 * Whether the client is the peer, because `trust proxy` is off. Express's own getter `ip` takes as long as everything
 * else here. False if the application defines `ip` itself.
 * @param {any} request
 */
function isDirect(request) {
  const prototype = Object.getPrototypeOf(request);
  if (prototype !== last.prototype) {
    last = { prototype, settings: prototype.app?.settings, hasIp: Object.hasOwn(prototype, 'ip') };
  }
  return last.settings?.['trust proxy'] === false && !last.hasIp && !Object.hasOwn(request, 'ip');
}

/**
 * @param {unknown} source
 * @param {unknown} [options]
 */
function throttle(source, options) {
  const { middleware, throttled } = connect(mergeOptions(source, options), reader);
  return withTools(throttled, middleware);
}

// Supports `import throttle` and `import { throttle }`. Node finds the named export in the last line.
// @ts-expect-error TypeScript does not support a function with properties as a module.
module.exports = Object.assign(throttle, { default: throttle });
Object.defineProperty(module.exports, 'throttle', { enumerable: true, value: throttle });
