// The field RateLimit, whose digits are written over those of the one before; and when a verdict takes
// the time.
'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { Value } = require('../web/value.js');
const { Verdict } = require('../web/verdict.js');

const NAMES = ['"a"', '"daily limit"'];

/**
 * The same in the plainest way.
 * @param {number} index
 * @param {number} left
 * @param {number} more
 */
const plain = (index, left, more) => `${NAMES[index]};r=${left}${more > 0 ? `;t=${more}` : ''}`;

/**
 * @param {number} index
 * @param {number} left
 * @param {number} more
 * @returns {[number, number, number]}
 */
const toAsk = (index, left, more) => [index, left, more];

describe('RateLimit as text', () => {
  it('is the same as in the plainest way, whatever came before', () => {
    const lefts = [0, 1, 8, 9, 10, 11, 90, 99, 100, 101, 999, 1000, 1_234_567, 2 ** 31, 2 ** 32 + 1, 2 ** 40, 1e15 - 1];
    const all = lefts.flatMap((left) => [0, 1, 86_400].flatMap((more) => [toAsk(0, left, more), toAsk(1, left, more)]));
    for (const before of all) {
      for (const ask of all) {
        const value = new Value(NAMES);
        // Twice, so that there is something to write over.
        value.of(...before);
        value.of(...toAsk(before[0], 7, before[2]));
        assert.equal(value.of(...ask), plain(...ask), `after ${before}`);
        assert.equal(value.of(...before), plain(...before), `after ${ask}`);
      }
    }
  });

  it('counts down and up, over every number of digits', () => {
    const value = new Value(NAMES);
    for (let left = 1100; left >= 0; left -= 1) assert.equal(value.of(0, left, 1), plain(0, left, 1));
    for (let left = 0; left <= 1100; left += 7) assert.equal(value.of(0, left, 1), plain(0, left, 1));
  });
});

describe('the time of a verdict', () => {
  const answer = { granted: 1, resetAfterMs: 500, limit: 10, remaining: 9, balance: 9, place: 0 };

  /**
   * When the bucket is full again, by a verdict that is looked at a second late.
   * @param {import('node:test').TestContext} t
   * @param {number} waitMs
   * @param {boolean} refused
   */
  function resetTime(t, waitMs, refused) {
    t.mock.timers.enable({ apis: ['Date'], now: 10_000 });
    const verdict = new Verdict(/** @type {any} */ ({ ...answer, waitMs }), [], 'tag', true, 1, refused);
    t.mock.timers.setTime(11_000);
    const first = verdict.info.resetTime.getTime();
    t.mock.timers.setTime(12_000);
    assert.equal(verdict.info.resetTime.getTime(), first);
    return first;
  }

  it('is that of the decision where the request is held', (t) => {
    assert.equal(resetTime(t, 300, false), 10_500);
  });

  it('is that of the decision where the request is refused, which may be held, too', (t) => {
    assert.equal(resetTime(t, 0, true), 10_500);
  });

  it('is that of the first look elsewhere', (t) => {
    assert.equal(resetTime(t, 0, false), 11_500);
  });
});
