// Adapters for those who make calls: fetch, undici, axios. They need neither of the packages.
'use strict';

const { BusyThrottle } = require('../index.js');
const { badArgument } = require('../face/errors.js');
const { Caller, ServiceBusyError, serviceOf } = require('./caller.js');
const { retryAfterMs } = require('./retry.js');
const { busyInterceptor } = require('./undici.js');

/** @import { CallOptions } from './index.js' */

/**
 * A fetch that asks a busy throttle first.
 * @param {CallOptions & { fetch?: typeof fetch }} [options]
 * @returns {typeof fetch}
 */
function busyFetch(options = {}) {
  const { fetch: inner = globalThis.fetch, ...rest } = options;
  if (typeof inner !== 'function') throw badArgument('fetch: must be a function');
  const caller = new Caller(rest);
  return async (input, init) => {
    const request = typeof input === 'object' && 'url' in input ? input : undefined;
    const service = caller.service(request ? request.url : String(input));
    // As for fetch itself, null takes away the signal of the request.
    await caller.hold(service, init?.signal === undefined ? request?.signal : init.signal);
    const response = await inner(input, init);
    // Who was asked first has sent it elsewhere, and that is a good answer.
    const last = response.redirected ? caller.service(response.url) : service;
    if (last !== service) caller.good(service);
    caller.answered(last, response.status, response.headers.get('retry-after'));
    return response;
  };
}

/**
 * Lets an axios instance ask a busy throttle first; gives the instance back.
 * @template {{ getUri: Function, interceptors: any }} T
 * @param {T} instance
 * @param {CallOptions} [options]
 * @returns {T}
 */
function busyAxios(instance, options) {
  if (typeof instance?.interceptors?.request?.use !== 'function') {
    throw badArgument('instance: must be what axios.create() gives');
  }
  const caller = new Caller(options);
  /** @type {WeakMap<object, string>} For whom each request was. */
  const services = new WeakMap();
  /** @param {any} response */
  const answered = (response) => {
    if (!response?.config) return;
    // Another interceptor may have put a copy in its place.
    const service =
      services.get(response.config) ?? caller.service(instance.getUri(response.config));
    caller.answered(service, response.status, response.headers?.['retry-after']);
  };
  instance.interceptors.request.use(async (/** @type {any} */ config) => {
    const service = caller.service(instance.getUri(config));
    try {
      await caller.hold(service, config.signal, config.cancelToken);
      services.set(config, service);
    } catch (error) {
      // Who is given up is left to axios, which has an error of its own for that, and sends nothing.
      if (!config.signal?.aborted && !config.cancelToken?.reason) throw error;
    }
    return config;
  });
  instance.interceptors.response.use(
    (/** @type {any} */ response) => {
      answered(response);
      return response;
    },
    (/** @type {any} */ error) => {
      answered(error?.response);
      throw error;
    },
  );
  return instance;
}

module.exports = {
  BusyThrottle,
  ServiceBusyError,
  busyAxios,
  busyFetch,
  busyInterceptor,
  retryAfterMs,
  serviceOf,
};
