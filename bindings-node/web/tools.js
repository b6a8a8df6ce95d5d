// The public properties of every middleware: domain, counts, resetKey and close.
'use strict';

/** @import { Middleware } from './middleware.js' */

/** @param {Middleware} middleware */
function tools(middleware) {
  return {
    get domain() {
      return middleware.domain;
    },
    get counts() {
      return middleware.counts;
    },
    /** @param {string | number | bigint | Uint8Array} tag */
    resetKey: (tag) => middleware.reset(tag),
    close: () => middleware.close(),
  };
}

/**
 * Adds the properties to a middleware function. Reading `domain` opens the throttle.
 * @template {Function} F
 * @param {F} fn
 * @param {Middleware} middleware
 * @returns {F & ReturnType<typeof tools>}
 */
function withTools(fn, middleware) {
  return /** @type {any} */ (Object.defineProperties(fn, Object.getOwnPropertyDescriptors(tools(middleware))));
}

module.exports = { tools, withTools };
