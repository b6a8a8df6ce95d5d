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
  client: (request) => request.ip ?? request.socket?.remoteAddress,
  trustProxy(request) {
    if (request.app?.get?.('trust proxy') !== true) return undefined;
    return (
      "'trust proxy' is true, so the client's address is what the client says it is: " +
      "set it to the number of proxies or to their networks, or set trustedProxies"
    );
  },
};

/**
 * @param {unknown} source
 * @param {unknown} [options]
 */
function throttle(source, options) {
  return toMiddleware(new Gate(readOptions(gather(source, options)), reader));
}

module.exports = { throttle };
