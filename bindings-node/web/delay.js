// Delays requests and refusals, and refunds requests after their response.
'use strict';

/** @import { Middleware } from './middleware.js' */

/** @typedef {Exclude<Awaited<ReturnType<Middleware['decide']>>, null>} Outcome */

/**
 * @typedef {(onLeave: () => void) => () => void} SubscribeToLeave Calls `onLeave` when the client leaves. Returns a
 *   function that cancels this.
 */

/**
 * Delays a request or a refusal, until its time is over or its client leaves. Calls `done` immediately if there is no
 * delay.
 * @param {Middleware} middleware
 * @param {Outcome} outcome
 * @param {SubscribeToLeave} subscribe
 * @param {(isHere: boolean) => void} done
 */
function delay(middleware, outcome, subscribe, done) {
  if (outcome.delayMs === 0) {
    done(true);
    return;
  }
  let stop = () => {};
  /** @param {boolean} isHere */
  function end(isHere) {
    clearTimeout(timer);
    stop();
    middleware.endDelay(outcome, !isHere);
    done(isHere);
  }
  // A timer has whole milliseconds, and a request must not pass early.
  const timer = setTimeout(end, Math.ceil(outcome.delayMs), true);
  try {
    stop = subscribe(() => end(false));
  } catch (error) {
    // The response is no event emitter. The timer ends the delay.
    middleware.failed('response', error);
  }
}

/**
 * Subscribes to the leaving of a client, by its ServerResponse.
 * @param {import('node:http').ServerResponse} response
 * @returns {SubscribeToLeave}
 */
function onClientLeave(response) {
  return (onLeave) => onClose(response, onLeave);
}

/** @type {WeakMap<object, Set<() => void>>} The callbacks for the end of a response or of a connection. */
const closeCallbacks = new WeakMap();

/**
 * Calls back once when a response has ended or its connection is closed, or soon if it has ended already. Also
 * listens to the connection, because a pipelined response gets no `close` event when its connection closes.
 * @param {import('node:http').ServerResponse} response
 * @param {() => void} closed
 * @returns {() => void} Cancels the callback.
 */
function onClose(response, closed) {
  const socket = response.req?.socket;
  if (response.destroyed || socket?.destroyed) {
    const already = setImmediate(closed);
    return () => clearImmediate(already);
  }
  const ofResponse = callbacksOf(response, (run) => run());
  // Runs after Node's own listener, which may still emit `close` at the response.
  const ofSocket = socket && callbacksOf(socket, setImmediate);
  function stop() {
    ofResponse.delete(end);
    ofSocket?.delete(end);
  }
  function end() {
    stop();
    closed();
  }
  ofResponse.add(end);
  ofSocket?.add(end);
  return stop;
}

/**
 * The callbacks for the `close` of a response or a connection, which share one listener.
 * @param {import('node:events').EventEmitter} source
 * @param {(run: () => void) => void} schedule
 */
function callbacksOf(source, schedule) {
  const existing = closeCallbacks.get(source);
  if (existing !== undefined) return existing;
  /** @type {Set<() => void>} */
  const callbacks = new Set();
  source.once('close', () => schedule(() => [...callbacks].forEach((end) => end())));
  closeCallbacks.set(source, callbacks);
  return callbacks;
}

/**
 * Refunds a request when its response has ended, if the options say so. A request whose client left before the
 * response began is not refunded, because the handler has run.
 * @param {Middleware} middleware
 * @param {Outcome} outcome
 * @param {import('node:http').ServerResponse} response
 * @param {any} request
 * @param {any} [companion]
 */
function refundAfter(middleware, outcome, response, request, companion) {
  if (!middleware.refunds || outcome.taken === 0) return;
  const closed = () => {
    if (response.headersSent) middleware.finish(outcome, response.statusCode < 400, request, companion);
  };
  try {
    onClose(response, closed);
  } catch (error) {
    middleware.failed('response', error);
  }
}

module.exports = { onClientLeave, delay, refundAfter };
