// A handler of Node's own servers (node:http, node:https, node:http2), throttled.
//
//     http.createServer(throttle(handler, '100/s')).listen(8080);
//
// All workers of the application count together, without being told. docs/node.md has the options.
'use strict';

const { connect } = require('./connect.js');
const { wrong } = require('./errors.js');
const { gather } = require('./options.js');
const { nodeReader } = require('./reader.js');
const { withTools } = require('./tools.js');

/** @import { IncomingMessage, ServerResponse } from 'node:http' */

/** @typedef {(request: any, response: any) => unknown} Handler */

/**
 * @param {Handler} handler
 * @param {unknown} source
 * @param {unknown} [options]
 */
function throttle(handler, source, options) {
  if (typeof handler !== 'function') throw wrong('handler', handler, 'a function of request and response');
  const { middleware, throttled } = connect(gather(source, options), nodeReader);

  /**
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @returns {unknown} What the handler gives, or a promise of it for a request that is delayed.
   */
  function handle(request, response) {
    return throttled(request, response, (error) => {
      // There is nobody else to tell.
      if (error !== undefined) throw error;
      return handler(request, response);
    });
  }
  return withTools(handle, middleware);
}

// For `import throttle` as well as `import { throttle }`. The last line shows Node the name.
// @ts-expect-error TypeScript does not know a function with properties as a module.
module.exports = Object.assign(throttle, { default: throttle });
Object.defineProperty(module.exports, 'throttle', { enumerable: true, value: throttle });
