// Adapters for HTTP clients: fetch, undici and axios. They import neither undici nor axios.
'use strict';

const { BusyThrottle } = require('../index.js');
const { badArgument } = require('../api/errors.js');
const { Caller, ServiceBusyError, serviceOf } = require('./caller.js');
const { retryAfterMs } = require('./retry.js');
const { busyInterceptor } = require('./undici.js');

/** @import { CallOptions } from './index.js' */

/**
 * Returns a fetch function that waits for a turn of a busy throttle.
 * @param {CallOptions & { fetch?: typeof fetch }} [options]
 * @returns {typeof fetch}
 */
function busyFetch(options = {}) {
  const { fetch: inner = globalThis.fetch, ...rest } = options;
  if (typeof inner !== 'function') throw badArgument('`fetch` must be a function');
  const caller = new Caller(rest);
  return async (input, init) => {
    const request = typeof input === 'object' && 'url' in input ? input : undefined;
    const service = caller.service(request ? request.url : String(input));
    // As in fetch, null removes the signal of the request.
    await caller.waitForTurn(service, init?.signal === undefined ? request?.signal : init.signal);
    const response = await inner(input, init);
    // A redirect to another service is a good response of the first one.
    const last = response.redirected ? caller.service(response.url) : service;
    if (last !== service) caller.onOk(service);
    caller.onResponse(last, response.status, response.headers.get('retry-after'));
    return response;
  };
}

/**
 * Makes the requests of an axios instance wait for a turn of a busy throttle. Returns the instance.
 * @template {{ getUri: Function, interceptors: any }} T
 * @param {T} instance
 * @param {CallOptions} [options]
 * @returns {T}
 */
function busyAxios(instance, options) {
  if (typeof instance?.interceptors?.request?.use !== 'function') {
    throw badArgument('`instance` must be an axios instance, as axios.create() returns');
  }
  const caller = new Caller(options);
  /** @type {WeakMap<object, string>} The service of each request, by its config. */
  const services = new WeakMap();
  /** @param {any} response */
  const onResponse = (response) => {
    if (!response?.config) return;
    // Another interceptor may have replaced the config by a copy.
    const service =
      services.get(response.config) ?? caller.service(instance.getUri(response.config));
    caller.onResponse(service, response.status, response.headers?.['retry-after']);
  };
  instance.interceptors.request.use(async (/** @type {any} */ config) => {
    const service = caller.service(instance.getUri(config));
    try {
      await caller.waitForTurn(service, config.signal, config.cancelToken);
      services.set(config, service);
    } catch (error) {
      // axios itself rejects an aborted request, with its own error, and does not send it.
      if (!config.signal?.aborted && !config.cancelToken?.reason) throw error;
    }
    return config;
  });
  instance.interceptors.response.use(
    (/** @type {any} */ response) => {
      onResponse(response);
      return response;
    },
    (/** @type {any} */ error) => {
      onResponse(error?.response);
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
