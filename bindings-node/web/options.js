// The options that are JavaScript's own: functions and regular expressions of the application, names of
// properties. All others are core's to read and check; docs/http.md explains them.
'use strict';

const { IncomingMessage } = require('node:http');
const { Socket } = require('node:net');

const { OPEN } = require('../api/middleware.js');
const { describe, isBytes, isTable } = require('../api/values.js');
const { applicationName } = require('./application.js');
const { misuse, wrong } = require('./errors.js');

/** @import { NativeMiddleware, Setup } from '../api/middleware.js' */

/** @typedef {Record<string, any>} Given Options that were given a value. */

/** As Node makes them. */
const REQUEST = new IncomingMessage(new Socket());

/**
 * The options as one object, of what a middleware was called with: a rate, the path of a file, a
 * throttle, or all options.
 * @param {unknown} source
 * @param {unknown} [options]
 * @returns {Record<string, unknown>}
 */
function gather(source, options) {
  if (options !== undefined && !isTable(options)) throw wrong('options', options, 'an object');
  if (typeof source === 'string' && source.endsWith('.toml')) return { ...options, file: source };
  if (typeof source === 'string' || typeof source === 'number') return { ...options, rate: source };
  if (isThrottle(source)) return { ...options, throttle: source };
  if (isTable(source)) return { ...source, ...options };
  throw wrong('throttle', source, 'a rate, an object of options, a Throttle, or a file');
}

/**
 * The options that have a value.
 * @param {Readonly<Record<string, unknown>>} options
 * @returns {Given}
 */
function present(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== null));
}

/**
 * Has core read the options, and opens the throttle.
 * @param {Given} given
 * @param {Setup} setup
 * @returns {NativeMiddleware}
 */
function open(given, setup) {
  const { throttle, ...rest } = { ...given };
  if (rest.routes !== undefined) rest.routes = toTexts(rest.routes);
  if (rest.body !== undefined) rest.body = toPlain(rest.body);
  if (throttle !== undefined) return ofThrottle(throttle, rest, setup);
  // Not before it is needed: where there is no addon, a throttle can be given.
  const { Throttle } = require('../index.js');
  return /** @type {any} */ (Throttle)[OPEN](rest, { application: applicationName(), ...setup });
}

/**
 * @param {unknown} value
 * @returns {boolean} Also for throttles of dthrottle-wasm.
 */
function isThrottle(value) {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, OPEN) === 'function';
}

/**
 * @param {any} throttle
 * @param {Given} rest
 * @param {Setup} setup
 * @returns {NativeMiddleware}
 */
function ofThrottle(throttle, rest, setup) {
  if (!isThrottle(throttle)) throw wrong('throttle', throttle, 'a Throttle, or one of its domains');
  if (rest.domain === undefined) return throttle[OPEN](rest, setup);
  if (!('domain' in throttle)) throw misuse('domain', 'the throttle is a domain already');
  return throttle.domain(rest.domain)[OPEN](rest, setup);
}

/**
 * Routes as text, which names the domain.
 * @param {unknown} routes
 */
function toTexts(routes) {
  return Array.isArray(routes) ? routes.map((route) => (route instanceof RegExp ? route.source : route)) : routes;
}

/**
 * @param {Given} given
 * @param {boolean | undefined} ignoresCase
 * @returns {RegExp[]}
 */
function toRoutes({ routes = [] }, ignoresCase) {
  const flags = ignoresCase ? 'i' : '';
  return routes.map((/** @type {string | RegExp} */ route) => {
    // One that remembers where it stopped would match every second time.
    if (route instanceof RegExp) return new RegExp(route.source, route.flags.replace(/[gyi]/g, '') + (route.ignoreCase ? 'i' : flags));
    try {
      // A line break in a path, %0A, is a character like any other.
      return new RegExp(`^(?:${route})$`, `us${flags}`);
    } catch (error) {
      throw wrong('routes', route, `a regular expression (${/** @type {Error} */ (error).message})`);
    }
  });
}

/**
 * A body of which JSON is made by the rules of JavaScript, as core takes it.
 * @param {unknown} body
 * @returns {unknown}
 */
function toPlain(body) {
  if (typeof body !== 'object' || body === null || isBytes(body)) return body;
  if (!Array.isArray(body) && !isTable(body)) return body;
  try {
    return JSON.parse(JSON.stringify(body));
  } catch (error) {
    throw misuse('body', `must be an object that JSON can express (${/** @type {Error} */ (error).message})`);
  }
}

/** @param {Given} given */
function toPropertyName({ requestPropertyName: name = 'rateLimit' }) {
  if (typeof name !== 'string' || name === '') throw wrong('requestPropertyName', name, 'text that is not empty');
  // What Node or JavaScript has there is needed.
  if (name in REQUEST) throw misuse('requestPropertyName', `must be a name that requests do not have already, got ${describe(name)}`);
  return name;
}

module.exports = { gather, open, present, toPlain, toPropertyName, toRoutes };
