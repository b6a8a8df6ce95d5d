// The options that exist only in JavaScript: functions, regular expressions and names of properties. Core reads and
// checks all others; docs/http.md explains them.
'use strict';

const { IncomingMessage } = require('node:http');
const { Socket } = require('node:net');

const { OPEN } = require('../api/middleware.js');
const { describe, isBytes, isTable } = require('../api/values.js');
const { applicationName } = require('./application.js');
const { badOption, badValue } = require('./errors.js');

/** @import { NativeMiddleware, Setup } from '../api/middleware.js' */

/** @typedef {Record<string, any>} Given Options without undefined and null. */

/** A request that shows which property names Node uses. */
const REQUEST = new IncomingMessage(new Socket());

/**
 * Returns the arguments of `throttle` as one object of options. The source is a rate, the path of a file, a throttle,
 * or the options.
 * @param {unknown} source
 * @param {unknown} [options]
 * @returns {Record<string, unknown>}
 */
function mergeOptions(source, options) {
  if (options !== undefined && !isTable(options)) throw badValue('options', options, 'an object');
  if (typeof source === 'string' && source.endsWith('.toml')) return { ...options, file: source };
  if (typeof source === 'string' || typeof source === 'number') return { ...options, rate: source };
  if (isThrottle(source)) return { ...options, throttle: source };
  if (isTable(source)) return { ...source, ...options };
  throw badValue('throttle', source, 'a rate, an object of options, a Throttle, or a file');
}

/**
 * The options without undefined and null.
 * @param {Readonly<Record<string, unknown>>} options
 * @returns {Given}
 */
function withoutMissing(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== null));
}

/**
 * Opens the native part of a middleware. Core reads the options.
 * @param {Given} given
 * @param {Setup} setup
 * @returns {NativeMiddleware}
 */
function open(given, setup) {
  const { throttle, ...rest } = { ...given };
  if (rest.routes !== undefined) rest.routes = toTexts(rest.routes);
  if (rest.body !== undefined) rest.body = toPlain(rest.body);
  if (throttle !== undefined) return openWith(throttle, rest, setup);
  // Loaded only when needed, because a throttle of dthrottle-wasm works without the addon.
  const { Throttle } = require('../index.js');
  return /** @type {any} */ (Throttle)[OPEN](rest, { application: applicationName(), ...setup });
}

/**
 * Whether a value is a throttle or a domain, of this package or of dthrottle-wasm.
 * @param {unknown} value
 * @returns {boolean}
 */
function isThrottle(value) {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, OPEN) === 'function';
}

/**
 * Opens the native part with a throttle of the application.
 * @param {any} throttle
 * @param {Given} rest
 * @param {Setup} setup
 * @returns {NativeMiddleware}
 */
function openWith(throttle, rest, setup) {
  if (!isThrottle(throttle)) throw badValue('throttle', throttle, 'a Throttle, or one of its domains');
  if (rest.domain === undefined) return throttle[OPEN](rest, setup);
  if (!('domain' in throttle)) throw badOption('domain', 'must be left out, because the throttle is a domain');
  return throttle.domain(rest.domain)[OPEN](rest, setup);
}

/**
 * Routes as text, from which core makes the default name of the domain.
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
    // The flags g and y would make a match depend on the previous one.
    if (route instanceof RegExp) return new RegExp(route.source, route.flags.replace(/[gyi]/g, '') + (route.ignoreCase ? 'i' : flags));
    try {
      // The flag s lets `.` match a line break, which may be in a path as %0A.
      return new RegExp(`^(?:${route})$`, `us${flags}`);
    } catch (error) {
      throw badValue('routes', route, `a regular expression (${/** @type {Error} */ (error).message})`);
    }
  });
}

/**
 * Converts a body that is sent as JSON to plain values, by the rules of JSON.stringify.
 * @param {unknown} body
 * @returns {unknown}
 */
function toPlain(body) {
  if (typeof body !== 'object' || body === null || isBytes(body)) return body;
  if (!Array.isArray(body) && !isTable(body)) return body;
  try {
    return JSON.parse(JSON.stringify(body));
  } catch (error) {
    throw badOption('body', `must be an object that JSON can express (${/** @type {Error} */ (error).message})`);
  }
}

/** @param {Given} given */
function toPropertyName({ requestPropertyName: name = 'rateLimit' }) {
  if (typeof name !== 'string' || name === '') throw badValue('requestPropertyName', name, 'text that is not empty');
  // Other properties with this name must stay.
  if (name in REQUEST) throw badOption('requestPropertyName', `must be a name that requests do not have already, got ${describe(name)}`);
  return name;
}

module.exports = { mergeOptions, open, withoutMissing, toPlain, toPropertyName, toRoutes };
