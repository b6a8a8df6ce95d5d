// Limits the requests to a handler of Node's own servers (node:http, node:https, node:http2).
//
//     http.createServer(throttle(handler, '100/s')).listen(8080);
//
// All workers of the application share one table. docs/node.md has the options.
'use strict';

const { connect } = require('./connect.js');
const { badValue } = require('./errors.js');
const { mergeOptions } = require('./options.js');
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
  if (typeof handler !== 'function') throw badValue('handler', handler, 'a function of request and response');
  const { middleware, throttled } = connect(mergeOptions(source, options), nodeReader);

  /**
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @returns {unknown} The result of the handler, or a promise of it after a delay.
   */
  function handle(request, response) {
    return throttled(request, response, (error) => {
      // Node's servers have no error handler that could receive the error.
      if (error !== undefined) throw error;
      return handler(request, response);
    });
  }
  return withTools(handle, middleware);
}

// Supports `import throttle` and `import { throttle }`. Node finds the named export in the last line.
// @ts-expect-error TypeScript does not support a function with properties as a module.
module.exports = Object.assign(throttle, { default: throttle });
Object.defineProperty(module.exports, 'throttle', { enumerable: true, value: throttle });
