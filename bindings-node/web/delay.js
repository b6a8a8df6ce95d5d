// Waiting: requests and refusals that are delayed for a while, and requests that are refunded after their
// response.
'use strict';

/** @import { Middleware } from './middleware.js' */

/** @typedef {Exclude<Awaited<ReturnType<Middleware['decide']>>, null>} Outcome */

/**
 * @typedef {(gone: () => void) => () => void} Leaving Calls back when the client goes away, until
 *   what it gives is called.
 */

/**
 * Delays a request or a refusal for its time, or until its client is gone. Calls back at once if there is
 * nothing to wait for.
 * @param {Middleware} middleware
 * @param {Outcome} outcome
 * @param {Leaving} leaving
 * @param {(here: boolean) => void} done
 */
function delay(middleware, outcome, leaving, done) {
  if (outcome.delayMs === 0) {
    done(true);
    return;
  }
  let stop = () => {};
  /** @param {boolean} here */
  function end(here) {
    clearTimeout(timer);
    stop();
    middleware.endDelay(outcome, !here);
    done(here);
  }
  // A timer has no fractions, and a turn must not come early.
  const timer = setTimeout(end, Math.ceil(outcome.delayMs), true);
  try {
    stop = leaving(() => end(false));
  } catch (error) {
    // A response that cannot be listened to: its turn comes all the same.
    middleware.failed('response', error);
  }
}

/**
 * The leaving of a client whose answer is a ServerResponse.
 * @param {import('node:http').ServerResponse} response
 * @returns {Leaving}
 */
function closing(response) {
  return (gone) => onClose(response, gone);
}

/** @type {WeakMap<object, Set<() => void>>} What waits for the end of a response, or of a connection. */
const closings = new WeakMap();

/**
 * Calls back once when a response has ended or its connection is closed, or soon if that is so
 * already. A response that stands behind others on its connection is not told when that closes.
 * @param {import('node:http').ServerResponse} response
 * @param {() => void} closed
 * @returns {() => void} Calls it off.
 */
function onClose(response, closed) {
  const socket = response.req?.socket;
  if (response.destroyed || socket?.destroyed) {
    const already = setImmediate(closed);
    return () => clearImmediate(already);
  }
  const here = waitingFor(response, (tell) => tell());
  // After Node's own listener, which may still tell a response.
  const below = socket && waitingFor(socket, setImmediate);
  function stop() {
    here.delete(end);
    below?.delete(end);
  }
  function end() {
    stop();
    closed();
  }
  here.add(end);
  below?.add(end);
  return stop;
}

/**
 * One listener for a response or a connection, however many wait for it.
 * @param {import('node:events').EventEmitter} source
 * @param {(tell: () => void) => void} when
 */
function waitingFor(source, when) {
  const known = closings.get(source);
  if (known !== undefined) return known;
  /** @type {Set<() => void>} */
  const waiting = new Set();
  source.once('close', () => when(() => [...waiting].forEach((end) => end())));
  closings.set(source, waiting);
  return waiting;
}

/**
 * Refunds a request when its response has ended, if the options say so. A response without a status,
 * whose client left before the answer, is not refunded: the handler has run.
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
    // It comes once, after the end or instead of it.
    onClose(response, closed);
  } catch (error) {
    middleware.failed('response', error);
  }
}

module.exports = { closing, delay, refundAfter };
