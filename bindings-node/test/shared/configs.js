// Tests of configurations: every form that is possible in JavaScript.
'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const vm = require('node:vm');

const { failsWith } = require('./vectors.js');

/** @typedef {typeof import('../../index.js')} Dthrottle */

/**
 * @param {string} label
 * @param {Dthrottle} dthrottle
 */
function testConfigs(label, dthrottle) {
  const { Throttle, ManualClock } = dthrottle;
  /** @type {(config?: unknown) => import('../../index.js').Throttle} */
  const open = (config) => new Throttle(/** @type {any} */ (config));
  /** @type {(config: unknown, field: string | undefined, words: string) => void} */
  const refuses = (config, field, words) => {
    assert.throws(
      () => open(config),
      (error) => {
        failsWith(dthrottle, 'config')(error);
        const { message, field: actual } = /** @type {any} */ (error);
        assert.equal(actual, field);
        assert.ok(message.includes(words), message);
        return true;
      },
    );
  };

  describe(`configurations: ${label}`, () => {
    it('a throttle accepts a rate alone, as text or number', () => {
      assert.deepEqual(new Throttle('5 per 2 minutes').rules, [{ name: 'rule1', limit: 5, windowMs: 120_000 }]);
      assert.deepEqual(new Throttle(7).rules, [{ name: 'rule1', limit: 7, windowMs: 1000 }]);
      refuses('5 per 2 fortnights', 'rate', 'fortnights');
      refuses(NaN, 'rate', 'NaN');
      refuses(-Infinity, 'rate', 'inf');
    });

    it('a throttle accepts all options together', () => {
      const throttle = new Throttle({
        rules: [
          { name: 'second', rate: '10/s', burst: 20 },
          { rate: 5, chargeRefused: true },
        ],
        dryRun: true,
        domains: {
          login: { rate: '5/min', burst: '1m' },
          free: {},
          'with space': { rules: [{ rate: '1/s', burst: 2 }], dryRun: false },
        },
        clock: new ManualClock(),
      });
      assert.equal(throttle.name, 'default');
      assert.deepEqual(throttle.rules, [
        { name: 'second', limit: 20, windowMs: 2000 },
        { name: 'rule2', limit: 5, windowMs: 1000 },
      ]);
      assert.deepEqual(throttle.domain('login').rules, [{ name: 'rule1', limit: 5, windowMs: 60_000 }]);
      assert.deepEqual(throttle.domain('free').rules, []);
      const strict = throttle.domain('with space');
      assert.equal(strict.name, 'with space');
      assert.deepEqual([1, 2, 3].map(() => strict.allow('t')), [true, true, false]);
      const loose = throttle.domain('login');
      assert.ok([1, 2, 3, 4, 5, 6].every(() => loose.allow('t')));
      assert.equal(loose.check('t').dryRun, true);
    });

    it('a domain without rules allows everything, with infinite numbers', () => {
      const throttle = new Throttle('unlimited');
      assert.deepEqual(throttle.check('t', 1_000_000), {
        allowed: true,
        granted: 1_000_000,
        delayMs: 0,
        retryAfterMs: 0,
        resetAfterMs: 0,
        limit: dthrottle.UNLIMITED,
        remaining: dthrottle.UNLIMITED,
        balance: dthrottle.UNLIMITED,
        rule: null,
        deciding: null,
        dryRun: false,
      });
      assert.equal(dthrottle.UNLIMITED, Infinity);
    });

    it('undefined properties are ignored at every level', () => {
      const rule = { rate: '2/s', burst: undefined, name: undefined, chargeRefused: undefined };
      const throttle = new Throttle({
        rate: undefined,
        burst: undefined,
        rules: [rule],
        dryRun: undefined,
        domains: { api: { rules: undefined, rate: '3/s', dryRun: undefined } },
        clock: undefined,
      });
      assert.deepEqual(throttle.rules, [{ name: 'rule1', limit: 2, windowMs: 1000 }]);
      assert.deepEqual(throttle.domain('api').rules, [{ name: 'rule1', limit: 3, windowMs: 1000 }]);
    });

    it('a configuration may be an object without prototype, of a class or of another realm', () => {
      const bare = Object.assign(Object.create(null), { rate: '2/s' });
      class Config {
        rate = '2/s';
      }
      const foreign = vm.runInNewContext("({ rules: [{ rate: '2/s' }] })");
      for (const config of [bare, new Config(), foreign]) {
        assert.deepEqual(open(config).rules, [{ name: 'rule1', limit: 2, windowMs: 1000 }]);
      }
    });

    it('an error about a wrong type names the field and the type', () => {
      refuses({ rate: null }, 'rate', 'null');
      refuses({ rate: true }, 'rate', 'true');
      refuses({ rate: 10n }, 'rate', 'a bigint');
      refuses({ rate: Symbol('x') }, 'rate', 'a symbol');
      refuses({ rate: () => '1/s' }, 'rate', 'a function');
      refuses({ rate: new Date(0) }, 'rate', 'a date');
      refuses({ rate: new Map() }, 'rate', 'Map');
      refuses({ rate: Promise.resolve('1/s') }, 'rate', 'Promise');
      refuses({ rate: new Number(3) }, 'rate', 'Number');
      refuses({ rate: ['1/s'] }, 'rate', 'a list');
      refuses({ rate: {} }, 'rate', 'a table');
      refuses({ rate: '1/s', burst: NaN }, 'burst', 'NaN');
      refuses({ rate: '1/s', burst: Infinity }, 'burst', 'inf');
      refuses({ rate: '1/s', burst: 1.5 }, 'burst', '1.5');
      refuses({ rate: '1/s', dryRun: 1 }, 'dryRun', 'true or false');
      refuses({ rules: { rate: '1/s' } }, 'rules', 'list');
      refuses({ rules: [{ rate: '1/s', chargeRefused: 'no' }] }, 'rules[0].chargeRefused', '"no"');
      refuses({ rules: [undefined] }, 'rules[0]', 'undefined');
      refuses({ rules: new Array(1) }, 'rules[0]', 'undefined');
      refuses({ domains: { api: { rate: '0/s' } } }, 'domains.api.rate', '0/s');
      refuses({ domains: [] }, 'domains', 'a list');
    });

    it('an error about a snake-case key suggests the camel-case key', () => {
      refuses({ rate: '1/s', dry_run: true }, 'dry_run', 'did you mean `dryRun`?');
      refuses({ rules: [{ rate: '1/s', charge_refused: true }] }, 'rules[0].charge_refused', 'chargeRefused');
      refuses({ rte: '1/s' }, 'rte', 'did you mean `rate`?');
      refuses({ rules: [{ rate: '1/s', clock: null }] }, 'rules[0].clock', 'unknown key');
    });

    it('a value that is not a configuration is an error', () => {
      for (const config of [undefined, null, true, 1n, [], new Map(), () => {}, Symbol('x')]) {
        assert.throws(() => open(config), failsWith(dthrottle, 'config'));
      }
    });

    it('a cyclic, deep or huge configuration is an error', () => {
      /** @type {any} */
      const circle = { rate: '1/s' };
      circle.domains = circle;
      assert.throws(() => open(circle), failsWith(dthrottle, 'config'));
      /** @type {any} */
      const list = [];
      list.push(list);
      refuses({ rules: list }, 'rules[0]', 'a list');
      refuses({ rate: list }, 'rate', 'a list');

      /** @type {any} */
      let deep = '1/s';
      for (let i = 0; i < 100_000; i += 1) deep = { rate: deep };
      assert.throws(() => open(deep), failsWith(dthrottle, 'config'));
      refuses({ rules: new Array(1e9) }, 'rules', 'so large an object');
      // A small object that contains 10^16 values through shared references.
      let wide = new Array(10).fill(0);
      for (let i = 0; i < 15; i += 1) wide = new Array(10).fill(wide);
      assert.throws(() => open({ rules: wide }), failsWith(dthrottle, 'config'));
    });

    it('an error of a getter in a configuration is passed on', () => {
      const mine = new Error('mine');
      const config = {
        get rate() {
          throw mine;
        },
      };
      assert.throws(() => open(config), (error) => error === mine);
    });

    it('fromToml() reads TOML and reports the line of an error', () => {
      const clock = new ManualClock();
      const text = '[domains.api]\nrate = "2/s"\n';
      assert.deepEqual(Throttle.fromToml(text, { clock }).domain('api').rules, [
        { name: 'rule1', limit: 2, windowMs: 1000 },
      ]);
      assert.throws(() => Throttle.fromToml('rate = "1/s"\nburst = 0\n'), {
        name: 'DthrottleError',
        code: 'DTHROTTLE_CONFIG',
        field: 'burst',
        line: 2,
      });
      for (const wrong of [undefined, null, 5, Buffer.from(text)]) {
        assert.throws(() => Throttle.fromToml(/** @type {any} */ (wrong)), failsWith(dthrottle, 'argument'));
      }
    });

    it('fromToml() accepts a table as an option', () => {
      const text = 'rate = "1/s"\n[domains]\ntable = { rate = "5/s" }\n';
      assert.equal(Throttle.fromToml(text, { table: { size: 5 } }).domain('table').rules[0].limit, 5);
      assert.throws(() => Throttle.fromToml('table = { size = 5 }', { table: { private: true } }), {
        code: 'DTHROTTLE_CONFIG',
        field: 'table',
      });
      assert.throws(() => Throttle.fromToml(text, { table: /** @type {any} */ ({ sice: 5 }) }), {
        code: 'DTHROTTLE_CONFIG',
        field: 'table.sice',
      });
    });

    it('fromToml() and fromFile() check their options', () => {
      for (const options of [{ clocks: 1 }, null, 5, []]) {
        const wrong = /** @type {any} */ (options);
        assert.throws(() => Throttle.fromToml('', wrong), failsWith(dthrottle, 'argument'));
        assert.throws(() => Throttle.fromFile('x', wrong), failsWith(dthrottle, 'argument'));
      }
      for (const clock of [null, 0, {}, 'now', new Date(), Object.create(ManualClock.prototype)]) {
        const wrong = /** @type {any} */ ({ rate: 1, clock });
        assert.throws(() => new Throttle(wrong), failsWith(dthrottle, 'argument'));
        assert.throws(() => Throttle.fromToml('', { clock: wrong.clock }), failsWith(dthrottle, 'argument'));
      }
    });

    it('a subclass of Throttle works with all constructors', () => {
      class Mine extends Throttle {
        busy() {
          return !this.peek('t').allowed;
        }
      }
      for (const mine of [new Mine('1/s'), Mine.fromToml('rate = "1/s"')]) {
        assert.ok(mine instanceof Mine);
        assert.ok(mine.allow('t'));
        assert.equal(mine.busy(), true);
      }
    });

    it('a subclass may have a constructor with other arguments', () => {
      class Fixed extends Throttle {
        constructor() {
          super('1/s');
        }
      }
      assert.equal(new Fixed().rules[0].limit, 1);
      assert.equal(Fixed.fromToml('rate = "100/s"').rules[0].limit, 100);
    });

    it('an instance without own keys is an error instead of a configuration without rules', () => {
      class Hidden {
        get rate() {
          return '1/s';
        }
      }
      const throttle = new Throttle('1/s');
      const inherited = Object.create({ rate: '1/s' });
      for (const odd of [new Hidden(), inherited, throttle, throttle.domain('default'), new ManualClock()]) {
        assert.throws(() => new Throttle(/** @type {any} */ (odd)), failsWith(dthrottle, 'config'));
      }
      assert.deepEqual(new Throttle({ rules: [] }).rules, []);
    });

    it('a throttle without rules is an error that names the fix', () => {
      for (const config of [{}, { rate: undefined }, { dryRun: true }, { domains: { api: { rate: undefined } } }]) {
        assert.throws(() => new Throttle(config), (/** @type {any} */ error) => {
          assert.match(error.message, /^`rate` is missing.* or rate = "unlimited"$/);
          return failsWith(dthrottle, 'config')(error) && error.field === 'rate';
        });
      }
      for (const config of ['unlimited', { rate: 'unlimited' }, { rules: [] }, { domains: { api: { rules: [] } } }]) {
        assert.deepEqual(new Throttle(/** @type {any} */ (config)).rules, []);
      }
    });

    it('inherited options are ignored', () => {
      const throttle = new Throttle({ rate: '10/s', clock: new ManualClock() });
      const ask = /** @type {any} */ (Object.create({ cost: 5, colour: 'red' }));
      assert.equal(throttle.check('t', ask).granted, 1);
      const config = Object.assign(Object.create({ clock: () => NaN }), { rate: '1/s' });
      assert.equal(new Throttle(config).allow('t'), true);
    });

    it('a list with a wrong length is an error', () => {
      for (const length of [-1, 1.5, 2 ** 53]) {
        /** @type {any} */
        const rules = new Proxy(/** @type {unknown[]} */ ([]), { get: (list, key) => (key === 'length' ? length : list[Number(key)]) });
        assert.throws(() => new Throttle({ rules }), failsWith(dthrottle, 'config'));
      }
    });
  });
}

module.exports = { testConfigs };
