// A handler of Node's own servers (node:http, node:https, node:http2), throttled.
//
//     http.createServer(throttle(handler, '100/s')).listen(8080);
//
// All workers of the application count together, without being told. docs/node.md has the options.
'use strict';

const { toMiddleware, withTools } = require('./connect.js');
const { Gate } = require('./gate.js');
const { wrong } = require('./near.js');
const { gather, readOptions } = require('./options.js');
const { nodeReader } = require('./reader.js');

/** @import { IncomingMessage, ServerResponse } from 'node:http' */

/** @typedef {(request: any, response: any) => unknown} Handler */

/**
 * @param {Handler} handler
 * @param {unknown} source
 * @param {unknown} [options]
 */
function throttle(handler, source, options) {
  if (typeof handler !== 'function') throw wrong('handler', handler, 'a function of request and response');
  const gate = new Gate(readOptions(gather(source, options)), nodeReader);
  const middleware = toMiddleware(gate);

  /**
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @returns {unknown} What the handler gives, or a promise of it for a request that is held.
   */
  function throttled(request, response) {
    return middleware(request, response, (error) => {
      // There is nobody else to tell.
      if (error !== undefined) throw error;
      return handler(request, response);
    });
  }
  return withTools(throttled, gate);
}

module.exports = { throttle };
