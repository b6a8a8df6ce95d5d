// Tests of header fields beyond the vectors: laws, rule names, and the time of day. For any implementation.
'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { Middleware } = require('../../web/middleware.js');
const { nodeReader } = require('../../web/reader.js');

/** @typedef {typeof import('../../index.js')} Dthrottle */
/** @typedef {any} Any */

const REQUEST = { method: 'GET', url: '/', headers: {}, socket: { remoteAddress: '203.0.113.7' } };
/** The client's tag. */
const TAG = Uint8Array.of(203, 0, 113, 7);

/**
 * Reads a list of strings with parameters (RFC 9651).
 * @param {string} text
 */
function parsed(text) {
  const item = /"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"((?:;[a-z]+=\d{1,15})*)(?:, |$)/y;
  /** @type {[string, Record<string, number>][]} */
  const items = [];
  while (item.lastIndex < text.length) {
    const found = item.exec(text);
    assert.ok(found, text);
    const parameters = found[2].split(';').slice(1).map((pair) => pair.split('='));
    items.push([found[1].replace(/\\(.)/g, '$1'), Object.fromEntries(parameters.map(([key, value]) => [key, Number(value)]))]);
  }
  return items;
}

/**
 * @param {string} label
 * @param {Dthrottle} dthrottle
 */
function testFields(label, dthrottle) {
  /**
   * A middleware with a manual clock.
   * @param {Any} rules The options of its throttle.
   * @param {Any} [options]
   */
  function made(rules, options = {}) {
    const clock = new dthrottle.ManualClock();
    const throttle = new dthrottle.Throttle({ ...rules, clock });
    return { clock, throttle, ...withMiddleware(throttle, options) };
  }

  /**
   * @param {Any} throttle
   * @param {Any} options
   */
  function withMiddleware(throttle, options) {
    let cost = 1;
    const middleware = new Middleware({ throttle, cost: () => cost, ...options }, nodeReader);
    /** @param {number} [units] */
    function ask(units = 1) {
      cost = units;
      return /** @type {Any} */ (middleware.decide(REQUEST));
    }
    /** @param {number} [units] @returns {Record<string, string>} */
    function fields(units) {
      const { values } = ask(units);
      return Object.fromEntries(values.map((/** @type {string} */ value, /** @type {number} */ i) => [middleware.fieldNames[i], value]));
    }
    return { ask, fields };
  }

  describe(`header fields, ${label}`, () => {
    it('header fields never promise more units than are available', () => {
      const { clock, throttle, ask } = made({ rate: '1 per 100 s', burst: 7 });
      for (const step of [0, 500, 130_000, 33_300, 250_000, 1000, 99_000, 18_250]) {
        clock.advance(step);
        const { decision, values } = ask();
        assert.equal(decision.allowed, true);
        const [[, { t }]] = parsed(values[1]);
        assert.ok(t <= 100);
        clock.advance(t * 1000);
        assert.ok(throttle.peek(TAG).remaining > decision.remaining);
      }
    });

    it('header fields name the deciding rule, even if two rules have the same burst', () => {
      const { clock, fields } = made({ rules: [{ name: 'a', rate: '5/s' }, { name: 'b', rate: '5/minute' }] });
      const limits = (/** @type {number} */ units) => parsed(fields(units).ratelimit);
      assert.deepEqual(limits(1), [['a', { r: 4, t: 1 }]]);
      clock.advance(1000);
      assert.deepEqual(limits(1), [['b', { r: 3, t: 12 }]]);
      assert.deepEqual(limits(3), [['b', { r: 0, t: 12 }]]);
      assert.deepEqual(limits(1), [['b', { r: 0, t: 11 }]]);
    });

    it('header fields show every number of units, independent of earlier responses', () => {
      const { throttle, fields } = made({ rate: '1/day', burst: 1100 });
      const left = (/** @type {number} */ units) => fields(units).ratelimit;
      for (let most = 1099; most >= 0; most -= 1) assert.equal(left(1), `"default";r=${most};t=86400`);
      for (let units = 7; units <= 1099; units += 7) {
        throttle.refund(TAG, 7);
        assert.equal(left(0), `"default";r=${units};t=86400`);
      }
      throttle.reset(TAG);
      assert.equal(left(0), '"default";r=1100');
    });

    it('header fields quote rule names of any kind', () => {
      for (const name of ['qu"ote', 'back\\slash', 'blank s', 'ü', '50% ;q=1', '日本']) {
        const { fields } = made({ rules: [{ name, rate: '5/s' }] });
        const written = fields();
        const [[shown, parameters]] = parsed(written['ratelimit-policy']);
        assert.deepEqual([shown, parameters], [/^[\x20-\x7e]*$/.test(name) ? name : encodeURIComponent(name), { q: 5, w: 1 }]);
        assert.equal(parsed(written.ratelimit)[0][0], shown);
      }
    });

    it('header fields show a large burst exactly, and zero remaining units in debt', () => {
      const { throttle, fields } = made({ rate: '1/100 years', burst: 2 ** 40 });
      throttle.chargeLocal(TAG, 2 ** 40);
      const written = fields();
      assert.equal(parsed(written['ratelimit-policy'])[0][1].q, 2 ** 40);
      assert.equal(parsed(written.ratelimit)[0][1].r, 0);
    });

    it('a domain without rules has no header fields', () => {
      assert.deepEqual(made({ rate: 'unlimited' }, { legacyHeaders: true }).fields(), {});
    });

    it('X-RateLimit-Reset counts from 1970 with the clock of the host', () => {
      const { fields } = withMiddleware(new dthrottle.Throttle('10/s'), { legacyHeaders: true, headers: 'draft-6' });
      const before = Date.now() / 1000;
      const { 'x-ratelimit-reset': reset, ...rest } = fields(5);
      assert.ok(Number(reset) >= before + 1 && Number(reset) <= Date.now() / 1000 + 2, reset);
      assert.deepEqual(rest, {
        'ratelimit-policy': '10;w=1',
        'ratelimit-limit': '10',
        'ratelimit-remaining': '5',
        'ratelimit-reset': '1',
        'x-ratelimit-limit': '10',
        'x-ratelimit-remaining': '5',
      });
    });

    it("X-RateLimit-Reset counts from the zero of the application's own clock", () => {
      const { clock, fields } = made({ rate: '10/s' }, { headers: 'x-ratelimit' });
      clock.advance(5000);
      assert.equal(fields()['x-ratelimit-reset'], '6');
      const own = withMiddleware(new dthrottle.Throttle({ rate: '10/s', clock: () => 7000 }), { headers: 'x-ratelimit' });
      const { 'x-ratelimit-reset': reset } = own.fields();
      // In Node, a clock function sets a manual clock, too.
      assert.equal(reset, '8');
    });
  });

  describe(`the decision of a middleware, ${label}`, () => {
    const rules = [{ name: 'second', rate: '10/s', burst: 5 }, { name: 'minute', rate: '20/minute' }];
    /** The cost of each request, and the time that passes before it. */
    const steps = [[1, 0], [4, 0], [1, 0], [1, 0], [2, 10], [3, 700], [0, 0], [5, 0], [1, 100_000], [9, 100_000], [1, 0]];
    /** @type {[string, Any][]} */
    const all = [['several rules', { rules }], ['one rule', { rate: '3/s', burst: 6 }], ['a dry run', { rules, dryRun: true }], ['no rules', { rules: [] }]];
    for (const [name, options] of all) {
      for (const maxDelayMs of [0, 150, 60_000]) {
        it(`the middleware decides like check: ${name}, maxDelayMs ${maxDelayMs}`, () => {
          const { clock, ask } = made(options, maxDelayMs === 0 ? {} : { maxDelayMs, maxDelayed: 1000 });
          const twinsClock = new dthrottle.ManualClock();
          const twin = new dthrottle.Throttle({ ...options, clock: twinsClock });
          for (const [cost, ms] of steps) {
            clock.advance(ms);
            twinsClock.advance(ms);
            assert.deepEqual(ask(cost).decision, twin.check('t', { cost, maxDelayMs, allowDebt: true }));
          }
        });
      }
    }
  });
}

module.exports = { testFields };
