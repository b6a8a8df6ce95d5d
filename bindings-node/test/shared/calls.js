// Tests of all methods: arguments, results, a wrong `this`, and errors.
'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const vm = require('node:vm');

const records = require('../../../tests/vectors/records.json');
const { codes, failsWith } = require('./vectors.js');

/** @typedef {typeof import('../../index.js')} Dthrottle */

/**
 * @param {string} label
 * @param {Dthrottle} dthrottle
 */
function testCalls(label, dthrottle) {
  const { Domain, DthrottleError, ManualClock, Throttle } = dthrottle;
  const open = () => new Throttle({ rate: '10/s', burst: 10, clock: new ManualClock() });

  describe(`calls: ${label}`, () => {
    it('a decision is a plain object', () => {
      const decision = open().check('t', 3);
      assert.equal(Object.getPrototypeOf(decision), Object.prototype);
      assert.deepEqual(JSON.parse(JSON.stringify(decision)), {
        allowed: true,
        granted: 3,
        delayMs: 0,
        retryAfterMs: 0,
        resetAfterMs: 300,
        limit: 10,
        remaining: 7,
        balance: 7,
        rule: null,
        deciding: 'rule1',
        dryRun: false,
      });
    });

    it('decisions and statistics have every field of records.json', () => {
      const throttle = open();
      const keys = (/** @type {object} */ record) => Object.keys(record);
      assert.deepEqual(keys(throttle.check('t')), records.Decision.js);
      assert.deepEqual(keys(throttle.stats()), records.Stats.js);
      assert.deepEqual(keys(new dthrottle.BusyThrottle().stats()), records.BusyStats.js);
    });

    it('a decision does not change after later checks', () => {
      const throttle = open();
      const first = throttle.check('t');
      throttle.check('t', 5);
      assert.equal(first.remaining, 9);
    });

    it('check accepts a cost or options', () => {
      const throttle = open();
      assert.equal(throttle.check('t').remaining, 9);
      assert.equal(throttle.check('t', undefined).remaining, 8);
      assert.equal(throttle.check('t', {}).remaining, 7);
      assert.equal(throttle.check('t', { cost: undefined, partial: undefined }).remaining, 6);
      assert.equal(throttle.check('t', { cost: 4, maxDelayMs: undefined }).remaining, 2);
      assert.equal(throttle.peek('t', { cost: 9, partial: true }).granted, 2);
      assert.equal(throttle.check('t', { cost: 3, maxDelayMs: 100 }).delayMs, 100);
      assert.equal(throttle.check('d', { cost: 25, allowDebt: true }).balance, -15);
      assert.equal(throttle.peek('d', { cost: 25, allowDebt: true }).retryAfterMs, 2500);
      const { rule, allowed, retryAfterMs } = throttle.check('t', { maxDelayMs: 0 });
      assert.deepEqual({ rule, allowed, retryAfterMs }, {
        rule: 'rule1',
        allowed: false,
        retryAfterMs: 200,
      });
    });

    it('check and peek throw errors about wrong options', () => {
      const throttle = open();
      const wrong = [
        [{ costs: 1 }, 'argument', /unknown option "costs"; .*cost, maxDelayMs, partial/],
        [{ max_delay_ms: 1 }, 'argument', /max_delay_ms/],
        [{ partial: 1 }, 'argument', /`partial` must be true or false, got 1/],
        [{ partial: null }, 'argument', /partial/],
        [{ allowDebt: 1 }, 'argument', /`allowDebt` must be true or false, got 1/],
        [{ maxDelayMs: '5' }, 'argument', /`maxDelayMs` must be a number, got "5"/],
        [{ maxDelayMs: null }, 'argument', /null/],
        [{ maxDelayMs: NaN }, 'argument', /NaN/],
        [{ cost: '5' }, 'cost', /`cost` must be .*"5"/],
        [{ cost: null }, 'cost', /`cost` must be .*null/],
        ['5', 'cost', /"5"/],
        [null, 'cost', /null/],
        [true, 'cost', /true/],
        [5n, 'cost', /bigint/],
        [new Number(5), 'cost', /Number/],
        [[5], 'cost', /a list/],
        [() => 5, 'cost', /a function/],
        [Symbol('5'), 'cost', /a symbol/],
        [11, 'cost', /burst/],
      ];
      for (const [ask, kind, words] of /** @type {any[]} */ (wrong)) {
        for (const call of [() => throttle.check('t', ask), () => throttle.peek('t', ask)]) {
          assert.throws(call, (/** @type {any} */ error) => {
            assert.match(error.message, words);
            return failsWith(dthrottle, kind)(error);
          });
        }
      }
      assert.equal(throttle.peek('t').balance, 10, 'a failed check must not take units');
    });

    it("an error thrown by the user's own getter or iterator is passed on", () => {
      const throttle = open();
      const mine = new Error('mine');
      const thrower = {
        get cost() {
          throw mine;
        },
        get [Symbol.toStringTag]() {
          throw mine;
        },
      };
      const { cost } = Object.getOwnPropertyDescriptors(thrower);
      const options = Object.defineProperties({}, { cost });
      assert.throws(() => throttle.check('t', options), (error) => error === mine);
      for (const call of [
        () => throttle.check('t', /** @type {any} */ (thrower)),
        () => throttle.allow('t', /** @type {any} */ (thrower)),
        () => throttle.allow(/** @type {any} */ (thrower)),
        () => throttle.reset(/** @type {any} */ (thrower)),
        () => throttle.domain(/** @type {any} */ (thrower)),
      ]) {
        assert.throws(call, (error) => error === mine);
      }
    });

    it('allow, refund, charge and chargeLocal accept only numbers as costs', () => {
      const throttle = open();
      const cost = failsWith(dthrottle, 'cost');
      for (const number of ['1', null, {}, [], 1n, true]) {
        const wrong = /** @type {any} */ (number);
        assert.throws(() => throttle.allow('t', wrong), cost);
        assert.throws(() => throttle.refund('t', wrong), cost);
        assert.throws(() => throttle.chargeLocal('t', wrong), cost);
        assert.throws(() => throttle.charge('t', wrong), cost);
        assert.throws(() => throttle.chargeLocal('t', 1, wrong), failsWith(dthrottle, 'argument'));
      }
      assert.throws(() => throttle.chargeLocal('t', /** @type {any} */ (undefined)), cost);
      assert.throws(() => throttle.charge('t', /** @type {any} */ (undefined)), cost);
      throttle.chargeLocal('t', 4);
      throttle.refund('t');
      assert.equal(throttle.peek('t').balance, 7);
      throttle.chargeLocal('t', 30, 50);
      assert.equal(throttle.peek('t').balance, -23);
      throttle.reset('t');
      assert.equal(throttle.peek('t').balance, 10);
      assert.equal(throttle.allow('t', 0), true);
      assert.equal(throttle.charge('t', 10), 0);
      assert.equal(throttle.charge(new TextEncoder().encode('t'), 25), 2500);
      assert.equal(throttle.peek('t').balance, -25);
    });

    it('text and its UTF-8 are the same tag', () => {
      const throttle = open();
      const text = 'zoë \u0000 日本 🎈';
      const bytes = new TextEncoder().encode(text);
      const offset = new Uint8Array([9, ...bytes, 9]).subarray(1, -1);
      const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
      shared.set(bytes);
      const foreign = vm.runInNewContext('Uint8Array.from(bytes)', { bytes });
      let left = 10;
      for (const tag of [text, bytes, Buffer.from(bytes), offset, shared, foreign]) {
        left -= 1;
        assert.equal(throttle.check(tag).balance, left);
      }
      assert.equal(throttle.peek(text.slice(0, -2)).balance, 10);
    });

    it('bytes with a wrong own length property count with their real length', () => {
      const throttle = open();
      const bytes = new Uint8Array(20_000).fill(0x41);
      let left = 10;
      for (const length of [20_000, 8, 40_000, 2 ** 40]) {
        Object.defineProperty(bytes, 'length', { value: length, configurable: true });
        left -= 1;
        assert.equal(throttle.check(bytes).balance, left);
      }
      assert.equal(throttle.check('A'.repeat(20_000)).balance, left - 1);
    });

    it('text of every length is the same tag as its UTF-8', () => {
      const throttle = open();
      const lengths = [1, 15, 16, 17, 31, 32, 33, 63, 64, 125, 126, 127, 128, 129, 300];
      for (const end of ['', '~', '\u007f', '\u0080', 'ÿ', 'Ł', '日', '🎈', '\ud83c', '\udf88x']) {
        for (const length of lengths) {
          const text = 'A'.repeat(length) + end;
          assert.equal(throttle.check(text).balance, 9, JSON.stringify(text));
          assert.equal(throttle.check(new TextEncoder().encode(text)).balance, 8, JSON.stringify(text));
          throttle.reset(text);
        }
      }
    });

    it('a lone surrogate counts as U+FFFD', () => {
      const throttle = open();
      assert.equal(throttle.check('\ud83c').balance, 9);
      assert.equal(throttle.check('\udf88').balance, 8);
      assert.equal(throttle.check('\ufffd').balance, 7);
      assert.equal(throttle.check(Buffer.from([0xef, 0xbf, 0xbd])).balance, 6);
    });

    it('empty tags and long tags are counted', () => {
      const throttle = open();
      const { buffer } = new Uint8Array(4);
      const detached = new Uint8Array(buffer);
      structuredClone(buffer, { transfer: [buffer] });
      assert.equal(throttle.check('').balance, 9);
      assert.equal(throttle.check(new Uint8Array(0)).balance, 8);
      assert.equal(throttle.check(detached).balance, 7);
      const long = 'é'.repeat(1 << 20);
      assert.equal(throttle.check(long).balance, 9);
      assert.equal(throttle.check(Buffer.from(long)).balance, 8);
      assert.equal(throttle.check(`${long}x`).balance, 9);
      assert.equal(throttle.check('short').balance, 9);
    });

    it('a value that is neither a string nor bytes is an error', () => {
      const throttle = open();
      const bytes = new ArrayBuffer(4);
      const others = [bytes, new DataView(bytes), new Uint16Array(bytes), new Int8Array(bytes)];
      for (const tag of [...others, new String('t'), {}, ['t'], 5, 5n, null, undefined, Symbol('t')]) {
        const wrong = /** @type {any} */ (tag);
        const calls = [
          () => throttle.check(wrong),
          () => throttle.peek(wrong, { partial: true }),
          () => throttle.allow(wrong),
          () => throttle.refund(wrong),
          () => throttle.reset(wrong),
          () => throttle.chargeLocal(wrong, 1),
          () => throttle.charge(wrong, 1),
        ];
        for (const call of calls) assert.throws(call, failsWith(dthrottle, 'argument'));
      }
    });

    it('domain() returns handles that share the buckets of the throttle', () => {
      const throttle = new Throttle({
        domains: { api: { rate: '2/s', rules: undefined } },
        rate: '1/s',
        clock: new ManualClock(),
      });
      const api = throttle.domain('api');
      assert.ok(api instanceof Domain && !(api instanceof Throttle));
      assert.ok(throttle instanceof Domain);
      assert.equal(throttle.domain('api').check('t').remaining, 1);
      assert.equal(api.check('t').remaining, 0);
      assert.equal(throttle.domain('default').check('t').remaining, 0);
      assert.equal(throttle.check('t').allowed, false);
      assert.throws(() => throttle.domain('API'), failsWith(dthrottle, 'domain'));
      assert.throws(() => throttle.domain(/** @type {any} */ (null)), failsWith(dthrottle, 'argument'));
    });

    it('stats() counts allowed, refused and dry-run checks', () => {
      const throttle = new Throttle({
        rate: '2/s',
        domains: { dry: { rate: '1/s', dryRun: true } },
        clock: new ManualClock(),
      });
      for (let i = 0; i < 5; i += 1) throttle.allow('t');
      throttle.domain('dry').check('t');
      throttle.domain('dry').check('t');
      throttle.peek('u');
      assert.deepEqual(throttle.stats(), {
        allowed: 4,
        refused: 3,
        dryRun: 1,
        failedOpen: 0,
        clamped: 0,
        evicted: 0,
        buckets: 2,
        unreported: 0,
      });
    });

    it('stats() counts the buckets that a full table evicted', () => {
      const table = { private: true, size: 1 };
      const throttle = new Throttle({ rate: '1/s', table, clock: new ManualClock() });
      const tags = Array.from({ length: 1000 }, (_, i) => String(i));
      assert.ok(throttle.allowMany(tags).every(Boolean));
      const { buckets, evicted } = throttle.stats();
      assert.ok(buckets < 1000);
      assert.equal(buckets + evicted, 1000);
    });

    it('allowMany() returns the same as a call of allow() for each tag', () => {
      const [one, many] = [open(), open()];
      const bytes = Buffer.from('ü');
      const some = ['a', 'a', bytes, '', new Uint8Array(0), 'ü', '\ud800', '\ufffd', 'a'.repeat(300)];
      const tags = Array(20).fill(some).flat();
      const expected = tags.map((tag) => one.allow(tag));
      assert.deepEqual(many.allowMany(tags), expected);
      assert.deepEqual(new Set(expected), new Set([true, false]));
      assert.deepEqual(many.stats(), one.stats());
      assert.deepEqual(many.allowMany([]), []);
      assert.deepEqual(many.allowMany(new Set(['new', 'newer'])), [true, true]);
      assert.deepEqual(many.allowMany((function* () { yield 'newest'; })()), [true]);
    });

    it('a decision does not depend on earlier calls', () => {
      // Tags of lengths at which the addon switches to another conversion, with similar beginnings and ends.
      const lengths = [0, 1, 7, 8, 9, 11, 15, 16, 17, 31, 32, 33, 99, 100, 101, 126, 127, 128, 300];
      const letters = lengths.map((length) => 'a'.repeat(length));
      const others = ['203.0.113.17', '203.0.113.27', '303.0.113.17', 'ü', 'aaaaaaaaü', '\u0161'.repeat(9), '\ud800aaaaaaaa'];
      const texts = [...letters, ...others];
      const bytes = texts.map((text) => Buffer.from(text));
      const tags = [...texts, ...bytes];
      const rule = { rate: '10000/s' };
      const throttle = new Throttle({ domains: { one: rule, two: rule }, clock: new ManualClock() });
      const names = ['one', 'two'];
      /** @type {Map<string, number>} */
      const taken = new Map();
      let random = 1;
      /** @param {number} below */
      const next = (below) => {
        random = (random * 48_271) % 2_147_483_647;
        return random % below;
      };
      for (let i = 0; i < 20_000; i += 1) {
        // A new domain each time, because ids are reused after the garbage collection.
        const name = names[next(2)];
        const domain = throttle.domain(name);
        const tag = tags[next(tags.length)];
        const cost = [undefined, undefined, 1, 3][next(4)];
        const repeats = next(3);
        for (let j = 0; j <= repeats; j += 1) {
          assert.equal(cost === undefined ? domain.allow(tag) : domain.allow(tag, cost), true);
          const key = `${name} ${Buffer.from(tag).toString('hex')}`;
          taken.set(key, (taken.get(key) ?? 0) + (cost ?? 1));
        }
      }
      for (const name of names) {
        for (const tag of tags) {
          const key = `${name} ${Buffer.from(tag).toString('hex')}`;
          assert.equal(throttle.domain(name).peek(tag).balance, 10_000 - (taken.get(key) ?? 0), key);
        }
      }
    });

    it('allowMany() with a wrong tag takes no units', () => {
      const throttle = open();
      const wrong = ['t', Buffer.from('t'), 5, null, undefined, {}, { length: 1 }, ['t', 5], ['t', null]];
      for (const tags of wrong) {
        assert.throws(
          () => throttle.allowMany(/** @type {any} */ (tags)),
          failsWith(dthrottle, 'argument'),
        );
      }
      const failing = function* () {
        yield 't';
        throw new RangeError('mine');
      };
      assert.throws(() => throttle.allowMany(failing()), { name: 'RangeError', message: 'mine' });
      assert.equal(throttle.peek('t').remaining, 10);
    });

    it('after close() every call throws except close()', () => {
      const throttle = new Throttle({ rate: '1/s', domains: { api: {} } });
      const api = throttle.domain('api');
      throttle.close();
      throttle.close();
      for (const domain of [throttle, api]) {
        const calls = [
          () => domain.check('t'),
          () => domain.allow('t'),
          () => domain.allowMany(['t']),
          () => domain.allowMany([]),
          () => domain.peek('t'),
          () => domain.refund('t'),
          () => domain.reset('t'),
          () => domain.chargeLocal('t', 1),
          () => domain.charge('t', 1),
        ];
        for (const call of calls) assert.throws(call, failsWith(dthrottle, 'closed'));
        assert.equal(domain.rules.length, domain === api ? 0 : 1);
      }
      assert.throws(() => throttle.domain('api'), failsWith(dthrottle, 'closed'));
      assert.equal(throttle.stats().allowed, 0);
    });

    it('a method with a wrong `this` throws a TypeError', () => {
      const throttle = open();
      const methods = ['check', 'peek', 'allow', 'allowMany', 'refund', 'reset', 'chargeLocal', 'charge', 'domain', 'stats', 'close'];
      for (const name of methods) {
        const method = /** @type {any} */ (throttle)[name];
        assert.equal(typeof method, 'function');
        const others = [undefined, null, {}, 'x', Object.create(Throttle.prototype), new ManualClock()];
        for (const other of others) {
          assert.throws(() => method.call(other, 't', 1), TypeError, name);
        }
      }
      for (const name of ['name', 'rules']) {
        assert.throws(() => Reflect.get(Domain.prototype, name, {}), TypeError);
      }
      const { now, advance, set } = ManualClock.prototype;
      for (const method of [now, advance, set]) {
        for (const other of [undefined, {}, throttle]) {
          assert.throws(() => method.call(/** @type {any} */ (other), 1), TypeError);
        }
      }
      const { fromToml } = Throttle;
      assert.throws(() => fromToml.call(/** @type {any} */ (undefined), "rate = '1/s'"), TypeError);
    });

    it('classes require new, and a Domain cannot be constructed', () => {
      for (const call of [Throttle, Domain, ManualClock]) {
        assert.throws(() => /** @type {any} */ (call)('1/s'), TypeError);
      }
      for (const parts of [undefined, {}, open()]) {
        assert.throws(() => Reflect.construct(Domain, [parts]), TypeError);
      }
    });

    it('a DthrottleError is an Error with a name and a stack', () => {
      assert.equal(codes.size, 7);
      const error = (() => {
        try {
          return open().check('t', -1);
        } catch (caught) {
          return /** @type {any} */ (caught);
        }
      })();
      assert.ok(error instanceof DthrottleError && error instanceof Error);
      assert.equal(Object.prototype.toString.call(error), '[object Error]');
      assert.equal(error.name, 'DthrottleError');
      assert.equal(error.code, 'DTHROTTLE_COST');
      assert.deepEqual(Object.keys(error), ['code']);
      const stack = String(error.stack);
      assert.match(stack, /^DthrottleError: `cost` must be a whole number from 0 to 2\^53, got -1/);
      assert.ok(stack.includes(__filename), stack);
      assert.ok(!stack.includes('explain'), stack);
    });
  });
}

module.exports = { testCalls };
