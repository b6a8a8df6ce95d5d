// Middleware for Express 4 and 5, and Connect.
//
//     app.use(throttle('100/s'));
//
// All workers of the application count together, without being told. docs/node.md has the options.
'use strict';

const { connect } = require('./connect.js');
const { gather } = require('./options.js');
const { nodeReader, toPaths } = require('./reader.js');
const { withTools } = require('./tools.js');

/** @import { Reader } from './middleware.js' */

/**
 * Express finds the client by `trust proxy`; Connect knows only the peer.
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
      "'trust proxy' is true, so the client's address is what the client says it is: " +
      "set it to the number of proxies or to their networks, or set trustedProxies"
    );
  },
};

/** What the requests of an application inherit; kept, because a request of Express is slow to read. */
let last = { prototype: null, settings: /** @type {any} */ (undefined), hasIp: false };

/**
 * Whether Express takes the peer for the client because `trust proxy` is off. To have it find that out
 * takes as long as everything here. An application may give its requests an `ip` of its own.
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
  const { middleware, throttled } = connect(gather(source, options), reader);
  return withTools(throttled, middleware);
}

// For `import throttle` as well as `import { throttle }`. The last line shows Node the name.
// @ts-expect-error TypeScript does not know a function with properties as a module.
module.exports = Object.assign(throttle, { default: throttle });
Object.defineProperty(module.exports, 'throttle', { enumerable: true, value: throttle });
