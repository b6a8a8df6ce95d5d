// Tests of busy throttles: results, and errors about bad input. Also run for WebAssembly.
'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

/**
 * @param {string} label
 * @param {typeof import('../../index.js')} dthrottle
 */
function testBusy(label, { BusyThrottle, DthrottleError, ManualClock }) {
  /**
   * @param {string} code
   * @param {RegExp} message
   */
  const fails = (code, message) => (/** @type {any} */ error) => {
    assert(error instanceof DthrottleError);
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  };

  describe(`${label}: busy throttle`, () => {
    it('a busy response halves the limit of its service only', () => {
      const clock = new ManualClock();
      const busy = new BusyThrottle({ clock });
      for (const name of ['a', 'b']) {
        for (let i = 0; i < 100; i += 1) assert(busy.shouldSend(name));
      }
      assert.deepEqual([busy.limit('a'), busy.rate('a')], [Infinity, 100]);
      busy.onBusy('a');
      assert.deepEqual([busy.limit('a'), busy.limit('b')], [50, Infinity]);
      clock.advance(60_000);
      assert.equal(busy.limit('a'), Infinity);
    });

    it('a busy throttle sends nothing during a pause and returns the time to wait', () => {
      const clock = new ManualClock();
      const busy = new BusyThrottle({ clock });
      assert.deepEqual(busy.turn('a'), { allowed: true, waitMs: 0, limit: Infinity });
      busy.onBusy('a', 2500);
      assert.deepEqual(busy.turn('a'), { allowed: false, waitMs: 2500, limit: 1 });
      busy.onOk('a');
      clock.advance(2500);
      assert(busy.shouldSend('a'));
      assert.deepEqual(busy.stats(), {
        ...{ sent: 2, refused: 1, good: 1, busy: 1, cuts: 1 },
        ...{ remoteBusy: 0, forgotten: 0, services: 1, peers: 0 },
      });
      busy.forget('a');
      assert.equal(busy.limit('a'), Infinity);
    });

    it('a busy throttle accepts the time as an argument, even if it goes back', () => {
      const busy = new BusyThrottle({ clock: new ManualClock() });
      busy.onBusy('a', 10_000, 100_000);
      assert(!busy.shouldSend('a', 109_999));
      assert(busy.shouldSend('a', 110_000));
      assert(busy.turn('a', 5).waitMs <= 3_600_000);
    });

    it('the mode "document" follows the arithmetic of the document', () => {
      const clock = new ManualClock();
      const busy = new BusyThrottle({ mode: 'document', clock });
      for (let i = 0; i < 3000; i += 1) {
        assert(busy.shouldSend('b'));
        busy.onBusy('b');
      }
      clock.advance(1000);
      let passed = 0;
      for (let i = 0; i < 5000; i += 1) passed += Number(busy.shouldSend('b'));
      assert.equal(passed, 38);
    });

    it('a busy throttle keeps 1,024 services, among them one with a pause', () => {
      const busy = new BusyThrottle({ clock: new ManualClock() });
      busy.onBusy('kept', 60_000);
      for (let i = 0; i < 50_000; i += 1) assert(busy.shouldSend(`s${i}`));
      assert.equal(busy.stats().services, 1024);
      assert(!busy.shouldSend('kept'));
    });

    it('a wrong argument of a busy throttle is an error that names it', () => {
      const busy = new BusyThrottle({ clock: new ManualClock() });
      const argument = 'DTHROTTLE_ARGUMENT';
      for (const now of [-1, NaN, Infinity, 1e300]) {
        const wrong = fails(argument, /^`nowMs` must be a number of milliseconds/);
        assert.throws(() => busy.shouldSend('a', now), wrong);
        assert.throws(() => busy.onOk('a', now), wrong);
        assert.throws(() => busy.onBusy('a', undefined, now), wrong);
        assert.throws(() => busy.onBusy('a', now), fails(argument, /^`retryAfterMs` must be a number of milliseconds/));
      }
      for (const service of /** @type {any[]} */ ([undefined, null, 7, {}])) {
        assert.throws(() => busy.turn(service), fails(argument, /^`service` must be a string/));
      }
      assert.throws(() => busy.turn('a', /** @type {any} */ ('1')), fails(argument, /^`nowMs` must be a number, got "1"/));
      assert.throws(() => new BusyThrottle(/** @type {any} */ (7)), fails(argument, /^`options` /));
      assert(busy.shouldSend('a'));
    });

    it('a closed busy throttle throws on every call', () => {
      const busy = new BusyThrottle();
      assert(busy.shouldSend('a'));
      assert.equal(busy.close(), undefined);
      busy.close();
      const calls = [
        () => busy.shouldSend('a'),
        () => busy.turn('a', 1),
        () => busy.onBusy('a', 1000),
        () => busy.onOk('a'),
        () => busy.limit('a'),
        () => busy.rate('a'),
        () => busy.forget('a'),
        () => busy.start(),
      ];
      const closed = fails('DTHROTTLE_CLOSED', /^the throttle is closed; open a new one$/);
      for (const call of calls) assert.throws(call, closed, String(call));
      assert.equal(busy.stats().sent, 1);
    });

    it('a wrong option of a busy throttle is an error that names it', () => {
      const config = 'DTHROTTLE_CONFIG';
      /** @type {[any, RegExp][]} */
      const wrongs = [
        [{ mode: 'dead' }, /^`mode` must be "live" or "document", got "dead"$/],
        [{ maxPause: 5 }, /^`maxPause` must be a duration such as "10s", got 5$/],
        [{ flor: 5 }, /^`flor` is an unknown key; did you mean `floor`\?$/],
        [{ recoverRate: 3, recoverValue: 3 }, /^`recoverValue` must not be given together with `recoverRate`/],
      ];
      for (const [options, message] of wrongs) {
        assert.throws(() => new BusyThrottle(options), fails(config, message));
      }
    });
  });
}

module.exports = { testBusy };
