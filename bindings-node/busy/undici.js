// The interceptor for undici's `compose`. A request handler has the methods of undici 6 or those of undici 7;
// both are supported.
'use strict';

const { Abort } = require('./abort.js');
const { Caller, Wait } = require('./caller.js');

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

/**
 * The controller that a handler gets while its request waits, before there is a connection. undici's fetch
 * aborts through it, because its requests have no signal.
 */
class WaitingController {
  paused = false;
  rawHeaders = null;
  rawTrailers = null;
  /** Handlers may keep this first object and read redirects from it, so later values are copied into it. */
  context = {};
  #abort;

  /** @param {InstanceType<typeof Abort>} abort */
  constructor(abort) {
    this.#abort = abort;
  }

  get aborted() {
    return this.#abort.aborted;
  }

  get reason() {
    return this.#abort.reason ?? null;
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    this.#abort.abort(reason);
  }

  // There is no data yet.
  pause() {}
  resume() {}
}

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
      const abort = new Abort(request.signal);
      /** @type {WaitingController | undefined} */
      let waiting;
      /** @type {InstanceType<typeof Wait> | undefined} */
      let wait;
      /** @type {string} */
      let service;
      function attempt() {
        try {
          abort.throwIfAborted();
          service ??= caller.service(urlOf(request));
          wait ??= new Wait(caller, service);
          const ms = wait.next();
          if (ms === 0) {
            leave();
            return dispatch(request, observe(handler, onResponse, waiting));
          }
          if (waiting === undefined) {
            waiting = new WaitingController(abort);
            start(handler, waiting);
          }
          abort.pause(ms).then(attempt);
        } catch (error) {
          leave();
          // undici expects errors in the handler, after dispatch() has returned.
          queueMicrotask(() => fail(handler, waiting, error));
        }
        return true;
      }
      function leave() {
        wait?.leave();
        abort.end();
      }
      /**
       * @param {number} status
       * @param {string | undefined} retryAfter
       */
      function onResponse(status, retryAfter) {
        caller.onResponse(service, status, retryAfter);
      }
      return attempt();
    }
    return send;
  };
}

/**
 * The URL of a request. The path of a CONNECT or OPTIONS request may not begin with a slash.
 * @param {{ origin?: string | URL, path?: string }} request
 */
function urlOf({ origin, path }) {
  const base = String(origin ?? '').replace(/\/$/, '');
  return path?.startsWith('/') ? base + path : base;
}

/**
 * Tells the handler that its request starts. undici does so again for the connection; the last controller counts.
 * @param {Handler} handler
 * @param {WaitingController} waiting
 */
function start(handler, waiting) {
  if (handler.onRequestStart) handler.onRequestStart(waiting, waiting.context);
  else handler.onConnect?.((/** @type {unknown} */ reason) => waiting.abort(reason), waiting.context);
}

/**
 * Returns a handler that also reports the response to `onResponse`.
 * @param {Handler} handler
 * @param {(status: number, retryAfter: string | undefined) => void} onResponse
 * @param {WaitingController | undefined} waiting
 */
function observe(handler, onResponse, waiting) {
  /** @type {Handler} */
  const observed = {};
  for (const name of METHODS) {
    if (typeof handler[name] === 'function') observed[name] = (...args) => handler[name](...args);
  }
  if (waiting) replaceController(observed, waiting);
  if (observed.onResponseStart) {
    observed.onResponseStart = (controller, status, headers, ...rest) => {
      if (status >= 200) onResponse(status, single(headers?.['retry-after']));
      return handler.onResponseStart(controller, status, headers, ...rest);
    };
  } else {
    observed.onHeaders = (status, headers, ...rest) => {
      if (status >= 200) onResponse(status, raw(headers, 'retry-after'));
      return handler.onHeaders(status, headers, ...rest);
    };
  }
  return observed;
}

/**
 * Replaces the controller of a waiting request by that of its connection.
 * @param {Handler} observed
 * @param {WaitingController} waiting
 */
function replaceController(observed, waiting) {
  const { onRequestStart, onConnect } = observed;
  if (onRequestStart) {
    observed.onRequestStart = (controller, context) => {
      Object.assign(waiting.context, context);
      onRequestStart(controller, context);
      // The request was aborted after its turn and before it had a connection.
      if (waiting.aborted) controller.abort(waiting.reason);
    };
  }
  if (onConnect) {
    observed.onConnect = (abort, context) => {
      Object.assign(waiting.context, context);
      onConnect(abort, context);
      if (waiting.aborted) abort(waiting.reason);
    };
  }
}

/** @param {string | string[] | undefined} value */
const single = (value) => (Array.isArray(value) ? value[0] : value);

/**
 * The value of a header in a list of names and values.
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
 * @param {WaitingController | undefined} waiting
 * @param {unknown} error
 */
function fail(handler, waiting, error) {
  if (handler.onResponseError) handler.onResponseError(waiting, error);
  else handler.onError(error);
}

module.exports = { busyInterceptor };
