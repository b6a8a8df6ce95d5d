// What middleware asks by is the same as `check`.
'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { ManualClock, Throttle } = require('../index.js');
const { Passed, ask } = require('../face/quick.js');
const { KeptBytes } = require('../face/values.js');

/** @typedef {import('../index.js').ThrottleOptions} Options */
/** @typedef {any} Any */

const RULES = [{ name: 'second', rate: '10/s', burst: 5 }, { name: 'minute', rate: '20/minute' }];

/** Cost, longest wait, and what time passes before. */
const STEPS = [[1, 0, 0], [4, 0, 0], [1, 0, 0], [1, 500, 0], [2, 150, 10], [3, 0, 700], [0, 0, 0], [5, 60_000, 0], [1, 0, 100_000]];

describe('a quick answer', () => {
  /** @type {[string, Options][]} */
  const all = [['several rules', { rules: RULES }], ['one rule', { rate: '3/s' , burst: 6 }], ['a dry run', { rules: RULES, dryRun: true }], ['no rules', { rules: [] }]];
  for (const [name, options] of all) {
    it(`has what a decision has: ${name}`, () => {
      const [clock, twinsClock] = [new ManualClock(), new ManualClock()];
      const [throttle, twin] = [new Throttle({ ...options, clock }), new Throttle({ ...options, clock: twinsClock })];
      const kinds = STEPS.map(([cost, maxWaitMs, ms]) => {
        clock.advance(ms);
        twinsClock.advance(ms);
        const answer = ask(throttle, 't', cost, maxWaitMs);
        const decision = twin.check('t', { cost, maxWaitMs });
        assert.deepEqual(answer.decision, decision);
        for (const [field, value] of Object.entries(decision)) assert.equal(/** @type {any} */ (answer)[field], value, field);
        return answer instanceof Passed;
      });
      assert.ok(kinds.includes(true));
      assert.equal(kinds.includes(false), name !== 'no rules');
    });
  }

  it('is had of another throttle, too', () => {
    const throttle = new Throttle({ rate: '1/minute' });
    const other = /** @type {any} */ ({ check: (/** @type {any} */ tag, /** @type {any} */ options) => throttle.check(tag, options) });
    assert.deepEqual(ask(other, 't', 1, 0).allowed, true);
    const answer = ask(other, 't', 1, 0);
    assert.equal(answer.rule, 'rule1');
    assert.equal(answer.place, -1);
  });

  it('is had by the check of whoever has one of its own', () => {
    const ours = new Throttle({ rate: '1/minute' });
    let asked = 0;
    const check = (/** @type {Any[]} */ ...words) => {
      asked += 1;
      return ours.check(words[0], words[1]);
    };
    class Own extends Throttle {
      /**
       * @override
       * @type {Throttle['check']}
       */
      check(...words) {
        return check(...words);
      }
    }
    const patched = Object.assign(new Throttle('5/s'), { check });
    const inherits = Object.create(ours, { check: { value: check } });
    const proxy = new Proxy(ours, { get: (target, name) => (name === 'check' ? check : Reflect.get(target, name)) });
    [new Own('5/s'), patched, inherits, proxy].forEach((throttle, i) => {
      assert.equal(ask(throttle, `t${i}`, 1, 0).allowed, true);
      assert.equal(ask(throttle, `t${i}`, 1, 0).allowed, false);
    });
    assert.equal(asked, 8);
    // One that knows costs only.
    const simple = /** @type {Any} */ ({ check: (/** @type {Any} */ tag, cost = 1) => ours.check(tag, assert.equal(typeof cost, 'number') ?? cost) });
    assert.equal(ask(simple, 'simple', 1, 0).allowed, true);
  });

  it('names wrong tags and costs', () => {
    const throttle = new Throttle('5/s');
    assert.throws(() => ask(throttle, /** @type {any} */ (7), 1, 0), /^DthrottleError: tag: must be a string/);
    assert.throws(() => ask(throttle, 't', 6, 0), /^DthrottleError: cost 6 can never pass/);
  });
});

describe('kept bytes', () => {
  it('are the tag that the bytes are, whatever was asked before', () => {
    const throttle = new Throttle({ rate: '1/minute', burst: 100, clock: new ManualClock() });
    /** @type {number[][]} */
    const tags = [[1, 2, 3, 4], [0, 0, 0, 0], [255, 0, 255, 128], Array(16).fill(0), [1, 2, 3, 4, ...Array(12).fill(0)], Array.from({ length: 16 }, (_, i) => 255 - i), [7], [], [1, 2, 3, 4, 5]];
    const kept = tags.map((bytes) => KeptBytes.keep(Uint8Array.from(bytes)));
    for (let round = 1; round <= 3; round += 1) {
      kept.forEach((tag, i) => {
        const left = 100 - 2 * round;
        assert.equal(throttle.check(tag).remaining, left + 1, String(tags[i]));
        assert.equal(throttle.check(Uint8Array.from(tags[i])).remaining, left, String(tags[i]));
        assert.equal(throttle.peek(tag).remaining, left);
      });
    }
    assert.equal(throttle.allow(kept[2]), true);
    throttle.refund(kept[2]);
    throttle.reset(kept[0]);
    assert.deepEqual(kept.slice(0, 3).map((tag) => throttle.peek(tag).remaining), [100, 94, 94]);
  });

  it('are not what others make of their class', () => {
    const throttle = new Throttle({ rate: '1/minute', burst: 10, clock: new ManualClock() });
    for (const made of [KeptBytes.from([5, 6, 7]), KeptBytes.of(5, 6, 7), new KeptBytes([5, 6, 7])]) throttle.check(made);
    assert.equal(throttle.peek(Uint8Array.of(5, 6, 7)).remaining, 7);
  });

  it('cannot be changed by whoever has them', () => {
    const throttle = new Throttle({ rate: '1/minute', burst: 10, clock: new ManualClock() });
    const kept = KeptBytes.keep(Uint8Array.from([1, 2, 3, 4]));
    kept[0] = 9;
    throttle.check(kept);
    assert.equal(throttle.peek(Uint8Array.from([1, 2, 3, 4])).remaining, 9);
  });
});
