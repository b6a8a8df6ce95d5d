// The waiting: requests that are held until their turn, refusals that are held for a while, and
// requests that are paid back after their response.
'use strict';

/** @import { Gate, Verdict } from './gate.js' */

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
    if (response.destroyed || response.socket?.destroyed) {
      const already = setImmediate(gone);
      return () => clearImmediate(already);
    }
    response.once('close', gone);
    return () => response.removeListener('close', gone);
  };
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
  response.once('close', () => {
    // A response that has ended leaves its socket.
    const whole = response.writableFinished && !response.socket?.destroyed;
    gate.finished(verdict, whole ? response.statusCode < 400 : null, request, companion);
  });
}

module.exports = { closing, hold, refundAfter, slow };
