// The native part of HTTP middleware, for `web/middleware.js` of whichever package. A throttle knows its
// own, so that middleware also takes throttles of dthrottle-wasm.
'use strict';

const { attempt } = require('./errors.js');
const { encode } = require('./encode_config.js');

/** @import { Domain } from '../index.js' */
/** @import { Clock, Handle, Native, Web } from '../surface.js' */

/** The name of the method of throttles that opens it, the same in all packages. */
const OPEN = Symbol.for('dthrottle.middleware');

/**
 * @typedef {object} Setup What an adapter knows besides the options.
 * @property {string} [application] The name of the application's table.
 * @property {string} [place] Tells this middleware from others: the method and path of a route.
 * @property {boolean} [isTemplate] Whether routes may say more, so that `allow` is checked later.
 * @property {NativeMiddleware} [within] The middleware whose throttle this one uses too.
 *
 * @typedef {object} NativeMiddleware
 * @property {Native} native
 * @property {Web} handle
 * @property {Clock | undefined} clock
 * @property {(() => void) | undefined} tick Brings the clock to the host's time: before every call.
 * @property {() => Domain} domain Finds the domain that is asked.
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
function toMiddleware(native, options, { application, place = '', within, isTemplate = false }, { clock, tick }, throttle, toDomain) {
  const words = encode(options);
  tick?.();
  const handle = attempt(() => native.webOpen(words, throttle, clock, within?.handle, application, place, isTemplate));
  const domain = () => toDomain(/** @type {Handle} */ (throttle ?? attempt(() => native.webDomain(handle))));
  return { native, handle, clock, tick, domain };
}

module.exports = { OPEN, toMiddleware };
