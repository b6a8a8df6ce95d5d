// Tests of clocks: manual clocks, clock functions, and the default clock.
'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { failsWith } = require('./vectors.js');

/** @typedef {typeof import('../../index.js')} Dthrottle */

/**
 * @param {string} label
 * @param {Dthrottle} dthrottle
 */
function testClocks(label, dthrottle) {
  const { Throttle, ManualClock } = dthrottle;
  const argument = failsWith(dthrottle, 'argument');

  describe(`clocks: ${label}`, () => {
    it('a manual clock moves only forward', () => {
      const clock = new ManualClock();
      assert.equal(clock.now(), 0);
      clock.advance(1.5);
      clock.advance(0.000001);
      assert.equal(clock.now(), 1.500001);
      clock.set(10);
      clock.set(10);
      assert.throws(() => clock.set(9.999999), argument);
      assert.equal(clock.now(), 10);
      assert.equal(new ManualClock(250).now(), 250);
      assert.equal(new ManualClock(undefined).now(), 0);
    });

    it('a manual clock rejects values that are not times', () => {
      const clock = new ManualClock();
      for (const ms of [NaN, Infinity, -1, '1', null, 1n, {}, undefined]) {
        const wrong = /** @type {any} */ (ms);
        assert.throws(() => clock.advance(wrong), argument);
        assert.throws(() => clock.set(wrong), argument);
        if (wrong !== undefined) assert.throws(() => new ManualClock(wrong), argument);
      }
      assert.equal(clock.now(), 0);
    });

    it('a manual clock is shared by throttles and domains', () => {
      const clock = new ManualClock(1e6);
      const one = new Throttle({ domains: { api: { rate: '1/s' } }, clock });
      const two = Throttle.fromToml('rate = "1/s"', { clock });
      const domain = one.domain('api');
      assert.deepEqual([domain.allow('t'), domain.allow('t'), two.allow('t'), two.allow('t')], [
        true,
        false,
        true,
        false,
      ]);
      clock.advance(1000);
      assert.deepEqual([domain.allow('t'), two.allow('t')], [true, true]);
    });

    it('a clock function is called before each call of the throttle', () => {
      let now = 5000;
      let reads = 0;
      const clock = () => {
        reads += 1;
        return now;
      };
      const throttle = new Throttle({ rate: '1/s', domains: { api: { rate: '1/s' } }, clock });
      const domain = throttle.domain('api');
      assert.equal(reads, 0);
      assert.deepEqual([throttle.name, throttle.rules.length, domain.name, reads], [
        'default',
        1,
        'api',
        0,
      ]);
      assert.equal(throttle.allow('t'), true);
      assert.equal(domain.check('t').allowed, true);
      now += 400;
      assert.equal(throttle.check('t').retryAfterMs, 600);
      assert.equal(domain.peek('t').retryAfterMs, 600);
      assert.equal(throttle.stats().buckets, 2);
      now += 600;
      assert.equal(throttle.stats().buckets, 0);
      assert.equal(throttle.allow('t'), true);
      assert.equal(reads, 7);
      throttle.refund('t');
      throttle.reset('t');
      throttle.chargeLocal('t', 3, 500);
      throttle.charge('t', 2);
      assert.equal(reads, 11);
      assert.equal(throttle.peek('t').balance, -4);
    });

    it('a clock function may count from any epoch', () => {
      const start = Date.now();
      const epochs = [0, 2 ** 60 / 1e6 - 1, 2 ** 60 / 1e6, start, start + 40 * 365 * 86_400_000];
      for (const epoch of epochs) {
        let now = epoch;
        const throttle = new Throttle({ rate: '5/minute', burst: 5, clock: () => now });
        const allowed = () => Array.from({ length: 50 }, () => throttle.allow('t')).filter(Boolean).length;
        assert.equal(allowed(), 5, String(epoch));
        now += 24_000;
        assert.equal(allowed(), 2, String(epoch));
        assert.equal(throttle.stats().failedOpen, 0);
      }
      const today = new Throttle({ rate: '5/hour', burst: 5, clock: Date.now });
      assert.equal(Array.from({ length: 50 }, () => today.allow('t')).filter(Boolean).length, 5);
    });

    it('a manual clock set to today after the throttle was made keeps its epoch', () => {
      const clock = new ManualClock();
      const throttle = new Throttle({ rate: '5/minute', burst: 5, clock });
      const today = Date.now();
      clock.set(today);
      assert.equal(Array.from({ length: 50 }, () => throttle.allow('t')).filter(Boolean).length, 5);
      assert.equal(clock.now(), today);
    });

    it('time stands still while a clock function goes back', () => {
      let now = 5000;
      const throttle = new Throttle({ rate: '1/s', clock: () => now });
      throttle.allow('t');
      for (now of [4000, 0, 4999.999]) assert.equal(throttle.check('t').retryAfterMs, 1000);
      now = 5500;
      assert.equal(throttle.check('t').retryAfterMs, 500);
    });

    it('a call throws if its clock function returns no time', () => {
      /** @type {any} */
      let now = 0;
      const throttle = new Throttle({ rate: '1/s', clock: () => now });
      for (now of [NaN, Infinity, -Infinity, -1, '5', null, undefined, 5n, new Date()]) {
        assert.throws(() => throttle.check('t'), argument);
        assert.throws(() => throttle.allow('t'), argument);
        assert.throws(() => throttle.stats(), argument);
      }
      now = 1;
      assert.equal(throttle.check('t').remaining, 0);
    });

    it('a call throws the error of its clock function as the cause', () => {
      const mine = new TypeError('mine');
      const throttle = new Throttle({
        rate: '1/s',
        clock() {
          throw mine;
        },
      });
      assert.throws(
        () => throttle.allow('t'),
        (error) => argument(error) && /** @type {Error} */ (error).cause === mine,
      );
      throttle.close();
    });

    it('a clock function may call the same throttle', () => {
      let depth = 0;
      /** @type {import('../../index.js').Throttle} */
      const throttle = new Throttle({
        rate: '10/s',
        clock() {
          if (depth > 0) return 1;
          depth += 1;
          assert.equal(throttle.check('inner').remaining, 9);
          depth -= 1;
          return 2;
        },
      });
      assert.equal(throttle.check('outer', 3).remaining, 7);
    });

    it('the default clock advances by itself', () => {
      const throttle = new Throttle('1000/s');
      assert.equal(throttle.check('t', 1000).remaining, 0);
      const giveUp = Date.now() + 10_000;
      while (!throttle.allow('t')) assert.ok(Date.now() < giveUp, 'the default clock did not advance');
      const { resetAfterMs } = throttle.peek('t');
      assert.ok(resetAfterMs > 0 && resetAfterMs <= 1000, String(resetAfterMs));
    });
  });
}

module.exports = { testClocks };
