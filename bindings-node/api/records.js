// How the numbers that a native part gives become the fields of records. Written by
// `cargo run -p xtask -- records` from the lists in core/src/records/.
'use strict';

/** @import { BusyStats, Decision, Stats } from '../index.js' */

/** How many numbers a decision is. */
const NUMBERS = 11;

/** Where the fields of a decision are among its numbers. */
const AT = Object.freeze({
  allowed: 0,
  limit: 1,
  remaining: 2,
  balance: 3,
  granted: 4,
  delayMs: 5,
  retryAfterMs: 6,
  resetAfterMs: 7,
  dryRun: 8,
  rule: 9,
  deciding: 10,
});

/**
 * @param {ArrayLike<number>} from
 * @param {(index: number) => string} nameOf The name of a rule.
 * @returns {Decision}
 */
function toDecision(from, nameOf) {
  return {
    allowed: from[0] !== 0,
    limit: from[1],
    remaining: from[2],
    balance: from[3],
    granted: from[4],
    delayMs: from[5],
    retryAfterMs: from[6],
    resetAfterMs: from[7],
    dryRun: from[8] !== 0,
    rule: from[9] < 0 ? null : nameOf(from[9]),
    deciding: from[10] < 0 ? null : nameOf(from[10]),
  };
}

/**
 * A decision from the fields of a daemon's answer.
 * @param {boolean} allowed
 * @param {(key: string, usual: number) => number} number The number of a field.
 * @param {{ [key: string]: string | null }} names The names of rules.
 * @returns {Decision}
 */
function toAnswer(allowed, number, names) {
  return {
    allowed,
    limit: number('limit', Infinity),
    remaining: number('remaining', Infinity),
    balance: number('balance', Infinity),
    granted: number('granted', 0),
    delayMs: number('delay_ns', 0) / 1e6,
    retryAfterMs: number('retry_after_ns', 0) / 1e6,
    resetAfterMs: number('reset_after_ns', 0) / 1e6,
    dryRun: number('dry_run', 0) !== 0,
    rule: names.rule,
    deciding: names.deciding,
  };
}

/**
 * @param {ArrayLike<number>} from
 * @returns {Stats}
 */
function toStats(from) {
  return {
    allowed: from[0],
    refused: from[1],
    dryRun: from[2],
    failedOpen: from[3],
    clamped: from[4],
    evicted: from[5],
    buckets: from[6],
    unreported: from[7],
  };
}

/**
 * @param {ArrayLike<number>} from
 * @returns {BusyStats}
 */
function toBusyStats(from) {
  return {
    sent: from[0],
    refused: from[1],
    good: from[2],
    busy: from[3],
    cuts: from[4],
    remoteBusy: from[5],
    forgotten: from[6],
    services: from[7],
    peers: from[8],
  };
}

module.exports = { AT, NUMBERS, toAnswer, toBusyStats, toDecision, toStats };
