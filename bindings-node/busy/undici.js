// A busy throttle for undici: an interceptor for `compose`. Handlers of requests have one of two sets
// of methods (undici 6 and 7); whichever they have is passed on.
'use strict';

const { Caller, Wait, pause } = require('./caller.js');

/** @import { CallOptions } from './index.js' */

/**
 * @typedef {Record<string, (...args: any[]) => any>} Handler
 * @typedef {(options: any, handler: any) => boolean} Dispatch
 */

const METHODS = [
  ...['onRequestStart', 'onRequestUpgrade', 'onResponseStart', 'onResponseData', 'onResponseEnd'],
  ...['onResponseError', 'onResponseStarted', 'onConnect', 'onError', 'onUpgrade', 'onHeaders'],
  ...['onData', 'onComplete', 'onBodySent', 'onRequestSent'],
];

/** @param {CallOptions} [options] */
function busyInterceptor(options) {
  const caller = new Caller(options);

  /** @param {Dispatch} dispatch */
  return (dispatch) => {
    /**
     * @param {any} request
     * @param {Handler} handler
     */
    function send(request, handler) {
      const { signal } = request;
      /** @type {InstanceType<typeof Wait> | undefined} */
      let wait;
      /** @type {string} */
      let service;
      function attempt() {
        try {
          if (signal?.aborted) throw signal.reason ?? new DOMException('given up', 'AbortError');
          service ??= caller.service(urlOf(request));
          wait ??= new Wait(caller, service);
          const ms = wait.next();
          if (ms === 0) {
            wait.leave();
            return dispatch(request, watch(handler, answered));
          }
          // Then it is given up, or it is worth asking again.
          pause(ms, signal).then(attempt);
        } catch (error) {
          wait?.leave();
          // Whoever dispatches expects no error here, but there.
          queueMicrotask(() => fail(handler, error));
        }
        return true;
      }
      /**
       * @param {number} status
       * @param {string | undefined} retryAfter
       */
      function answered(status, retryAfter) {
        caller.answered(service, status, retryAfter);
      }
      return attempt();
    }
    return send;
  };
}

/**
 * The URL of a request; the path of some is none.
 * @param {{ origin?: string | URL, path?: string }} request
 */
function urlOf({ origin, path }) {
  const base = String(origin ?? '').replace(/\/$/, '');
  return path?.startsWith('/') ? base + path : base;
}

/**
 * @param {Handler} handler
 * @param {(status: number, retryAfter: string | undefined) => void} answered
 */
function watch(handler, answered) {
  /** @type {Handler} */
  const watched = {};
  for (const name of METHODS) {
    if (typeof handler[name] === 'function') watched[name] = (...args) => handler[name](...args);
  }
  if (watched.onResponseStart) {
    watched.onResponseStart = (controller, status, headers, ...rest) => {
      if (status >= 200) answered(status, single(headers?.['retry-after']));
      return handler.onResponseStart(controller, status, headers, ...rest);
    };
  } else {
    watched.onHeaders = (status, headers, ...rest) => {
      if (status >= 200) answered(status, raw(headers, 'retry-after'));
      return handler.onHeaders(status, headers, ...rest);
    };
  }
  return watched;
}

/** @param {string | string[] | undefined} value */
const single = (value) => (Array.isArray(value) ? value[0] : value);

/**
 * A header in a list of names and values.
 * @param {readonly (Buffer | string)[] | null | undefined} headers
 * @param {string} wanted
 */
function raw(headers, wanted) {
  for (let i = 0; headers && i + 1 < headers.length; i += 2) {
    if (String(headers[i]).toLowerCase() === wanted) return String(headers[i + 1]);
  }
  return undefined;
}

/**
 * @param {Handler} handler
 * @param {unknown} error
 */
function fail(handler, error) {
  if (handler.onResponseError) handler.onResponseError(undefined, error);
  else handler.onError(error);
}

module.exports = { busyInterceptor };
