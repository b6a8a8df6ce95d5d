// Opens the native part of HTTP middleware for `web/middleware.js`. It is a method of throttles, so that the middleware
// of this package also accepts throttles of dthrottle-wasm.
'use strict';

const { attempt } = require('./errors.js');
const { encode } = require('./encode_config.js');

/** @import { Domain } from '../index.js' */
/** @import { Clock, Handle, Native, Web } from '../surface.js' */

/** The name of that method, which is the same in both packages. */
const OPEN = Symbol.for('dthrottle.middleware');

/**
 * @typedef {object} Setup Settings of an adapter that are no options.
 * @property {string} [application] The name of the application's table.
 * @property {string} [namePart] The method and path of its route.
 * @property {boolean} [isTemplate] Whether routes may override options, so that `allow` cannot be checked yet.
 * @property {NativeMiddleware} [within] The middleware whose throttle it shares.
 *
 * @typedef {object} NativeMiddleware
 * @property {Native} native
 * @property {Web} handle
 * @property {Clock | undefined} clock
 * @property {(() => void) | undefined} tick Sets the clock to the host's time. Called before every native call.
 * @property {() => Domain} domain Returns the domain in which requests are counted.
 */

/**
 * @param {Native} native
 * @param {Readonly<Record<string, unknown>>} options
 * @param {Setup} setup
 * @param {{ clock: Clock | undefined, tick: (() => void) | undefined }} source
 * @param {Handle | undefined} throttle The application's own.
 * @param {(handle: Handle) => Domain} toDomain
 * @returns {NativeMiddleware}
 */
function toMiddleware(native, options, { application, namePart = '', within, isTemplate = false }, { clock, tick }, throttle, toDomain) {
  const encoded = encode(options);
  tick?.();
  const handle = attempt(() => native.webOpen(encoded, throttle, clock, within?.handle, application, namePart, isTemplate));
  const domain = () => toDomain(/** @type {Handle} */ (throttle ?? attempt(() => native.webDomain(handle))));
  return { native, handle, clock, tick, domain };
}

module.exports = { OPEN, toMiddleware };
