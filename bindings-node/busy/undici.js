// A busy throttle for undici: an interceptor for `compose`. Handlers of requests have one of two sets
// of methods (undici 6 and 7); whichever they have is passed on.
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
 * What a handler has in place of a connection's controller while its request waits. Only so undici's
 * fetch says that it was given up: its requests have no signal.
 */
class Waiting {
  paused = false;
  rawHeaders = null;
  rawTrailers = null;
  /** Handlers may keep the first that they are given, and read of redirects in it. */
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
    this.#abort.tell(reason);
  }

  // Nothing flows yet.
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
      /** @type {Waiting | undefined} */
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
            return dispatch(request, watch(handler, answered, waiting));
          }
          if (waiting === undefined) {
            waiting = new Waiting(abort);
            start(handler, waiting);
          }
          // Then it is given up, or it is worth asking again.
          abort.pause(ms).then(attempt);
        } catch (error) {
          leave();
          // Whoever dispatches expects no error here, but there.
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
 * A handler is told that its request begins for each attempt anew: what it is given last counts.
 * @param {Handler} handler
 * @param {Waiting} waiting
 */
function start(handler, waiting) {
  if (handler.onRequestStart) handler.onRequestStart(waiting, waiting.context);
  else handler.onConnect?.((/** @type {unknown} */ reason) => waiting.abort(reason), waiting.context);
}

/**
 * @param {Handler} handler
 * @param {(status: number, retryAfter: string | undefined) => void} answered
 * @param {Waiting | undefined} waiting
 */
function watch(handler, answered, waiting) {
  /** @type {Handler} */
  const watched = {};
  for (const name of METHODS) {
    if (typeof handler[name] === 'function') watched[name] = (...args) => handler[name](...args);
  }
  if (waiting) takeOver(watched, waiting);
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

/**
 * Lets a connection take the place of what a handler had while it waited.
 * @param {Handler} watched
 * @param {Waiting} waiting
 */
function takeOver(watched, waiting) {
  const { onRequestStart, onConnect } = watched;
  if (onRequestStart) {
    watched.onRequestStart = (controller, context) => {
      Object.assign(waiting.context, context);
      onRequestStart(controller, context);
      // Given up after its turn, before it had a connection.
      if (waiting.aborted) controller.abort(waiting.reason);
    };
  }
  if (onConnect) {
    watched.onConnect = (abort, context) => {
      Object.assign(waiting.context, context);
      onConnect(abort, context);
      if (waiting.aborted) abort(waiting.reason);
    };
  }
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
 * @param {Waiting | undefined} waiting
 * @param {unknown} error
 */
function fail(handler, waiting, error) {
  if (handler.onResponseError) handler.onResponseError(waiting, error);
  else handler.onError(error);
}

module.exports = { busyInterceptor };
