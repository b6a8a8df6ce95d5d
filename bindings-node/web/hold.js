// The waiting: requests that are held until their turn, refusals that are held for a while, and
// requests that are paid back after their response.
'use strict';

/** @import { Verdict } from './answers.js' */
/** @import { Gate } from './gate.js' */

/**
 * @typedef {(gone: () => void) => () => void} Leaving Calls back when the client goes away, until
 *   what it gives is called.
 */

/**
 * Holds a request until its turn, or until its client is gone: then what it took is given back.
 * @param {Gate} gate
 * @param {Verdict} verdict
 * @param {Leaving} leaving
 * @param {(here: boolean) => void} done
 */
function hold(gate, verdict, leaving, done) {
  gate.hold();
  wait(verdict.waitMs, leaving, (here) => {
    gate.leave();
    if (!here) gate.giveUp(verdict);
    done(here);
  });
}

/**
 * Holds a refusal, if the options say so.
 * @param {Gate} gate
 * @param {Leaving} leaving
 * @param {() => void} done
 */
function slow(gate, leaving, done) {
  const ms = gate.slow();
  if (ms === 0) {
    done();
    return;
  }
  wait(ms, leaving, () => {
    gate.leave();
    done();
  });
}

/**
 * @param {number} ms
 * @param {Leaving} leaving
 * @param {(here: boolean) => void} done
 */
function wait(ms, leaving, done) {
  /** @param {boolean} here */
  function end(here) {
    clearTimeout(timer);
    stop();
    done(here);
  }
  // A timer has no fractions, and a turn must not come early.
  const timer = setTimeout(end, Math.ceil(ms), true);
  const stop = leaving(() => end(false));
}

/**
 * The leaving of a client whose answer is a ServerResponse.
 * @param {import('node:http').ServerResponse} response
 * @returns {Leaving}
 */
function closing(response) {
  return (gone) => {
    if (response.destroyed || response.req?.socket?.destroyed) {
      const already = setImmediate(gone);
      return () => clearImmediate(already);
    }
    return onClose(response, gone);
  };
}

/** @type {WeakMap<object, Set<() => void>>} What waits for the end of a connection. */
const connections = new WeakMap();

/**
 * Calls back once when a response has ended or its connection is closed. A response that stands
 * behind others on its connection is not told when that closes.
 * @param {import('node:http').ServerResponse} response
 * @param {() => void} closed
 * @returns {() => void} Calls it off.
 */
function onClose(response, closed) {
  const socket = response.req?.socket;
  const waiting = socket && (connections.get(socket) ?? watch(socket));
  function stop() {
    response.removeListener('close', end);
    waiting?.delete(end);
  }
  function end() {
    stop();
    closed();
  }
  response.once('close', end);
  waiting?.add(end);
  return stop;
}

/**
 * One listener for a connection, however many requests it has.
 * @param {import('node:net').Socket} socket
 */
function watch(socket) {
  /** @type {Set<() => void>} */
  const waiting = new Set();
  connections.set(socket, waiting);
  // After Node's own, which may still tell a response.
  socket.once('close', () => setImmediate(() => [...waiting].forEach((end) => end())));
  return waiting;
}

/**
 * Pays a request back when its response has ended, if the options say so. A connection that closes
 * before has failed.
 * @param {Gate} gate
 * @param {Verdict} verdict
 * @param {import('node:http').ServerResponse} response
 * @param {any} request
 * @param {any} [companion]
 */
function refundAfter(gate, verdict, response, request, companion) {
  if (!gate.refunds || verdict.taken === 0) return;
  // It comes once, after the end or instead of it.
  onClose(response, () => {
    // A response that has ended leaves its socket.
    const whole = response.writableFinished && !response.socket?.destroyed;
    gate.finished(verdict, whole ? response.statusCode < 400 : null, request, companion);
  });
}

module.exports = { closing, hold, refundAfter, slow };
