// What a response says, field by field.
'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { ManualClock, Throttle } = require('../index.js');
const { Decided, ask: askQuickly } = require('../face/quick.js');
const { Headers, problem, retryAfter } = require('../web/headers.js');

/** @typedef {import('../index.js').Decision} Decision */
/** @typedef {import('../index.js').ThrottleOptions} Options */

/** @param {Options} options */
function made(options) {
  const clock = new ManualClock();
  return { clock, throttle: new Throttle({ ...options, clock }) };
}

/**
 * @param {string | null} kind
 * @param {Throttle} throttle
 * @param {Decision} decision
 * @param {boolean} [legacy]
 * @returns {Record<string, string>}
 */
function fields(kind, throttle, decision, legacy = false) {
  return fieldsOf(kind, throttle, new Decided(decision, -1), legacy);
}

/**
 * @param {string | null} kind
 * @param {Throttle} throttle
 * @param {import('../face/quick.js').Answer} answer
 * @param {boolean} [legacy]
 * @returns {Record<string, string>}
 */
function fieldsOf(kind, throttle, answer, legacy = false) {
  const policies = throttle.rules.map(({ name, limit, windowMs }) => /** @type {const} */ ([name, { name, quota: limit, windowMs }]));
  const list = new Headers(kind, legacy, new Map(policies)).fields(answer);
  return Object.fromEntries(list.flatMap((name, i) => (i % 2 ? [] : [[name, list[i + 1]]])));
}

/** Reads a list of strings with parameters (RFC 9651). @param {string} text */
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

describe('fields', () => {
  it('of the standard', () => {
    const { throttle } = made({ rate: '10/s' });
    const written = fields('draft-8', throttle, throttle.check('t', 3));
    assert.deepEqual(Object.keys(written), ['ratelimit-policy', 'ratelimit']);
    assert.deepEqual(parsed(written['ratelimit-policy']), [['rule1', { q: 10, w: 1 }]]);
    assert.deepEqual(parsed(written.ratelimit), [['rule1', { r: 7, t: 1 }]]);
    assert.deepEqual(fields(null, throttle, throttle.check('t')), {});
  });

  it('of a throttle that is not ours, whose figures may be any', () => {
    const { throttle } = made({ rate: '10/s' });
    for (const [remaining, whole] of [[7.9, 7], [-2, 0], [NaN, 0], [1e300, 1e15 - 1]]) {
      const written = fields('draft-8', throttle, { ...throttle.peek('t'), remaining });
      assert.equal(parsed(written.ratelimit)[0][1].r, whole);
    }
  });

  it('of a refusal', () => {
    const { clock, throttle } = made({ rate: '1/minute', burst: 5 });
    throttle.check('t', 5);
    clock.advance(1500);
    const decision = throttle.check('t', 2);
    const written = fields('draft-8', throttle, decision);
    assert.deepEqual(parsed(written.ratelimit), [['rule1', { r: 0, t: 119 }]]);
    assert.deepEqual(parsed(written['ratelimit-policy']), [['rule1', { q: 5, w: 300 }]]);
    assert.equal(retryAfter(decision), 119);
  });

  it('never promise too early', () => {
    const { clock, throttle } = made({ rate: '1 per 100 s', burst: 7 });
    for (const step of [0, 500, 130_000, 33_300, 250_000, 1000, 99_000, 18_250]) {
      clock.advance(step);
      const decision = throttle.check('t');
      if (!decision.allowed) continue;
      const [[, { t }]] = parsed(fields('draft-8', throttle, decision).ratelimit);
      assert.ok(t <= 100);
      clock.advance(t * 1000);
      assert.ok(throttle.peek('t').remaining > decision.remaining);
    }
  });

  it('name the rule that decides', () => {
    const { throttle } = made({ rules: [{ name: 'second', rate: '2/s' }, { name: 'day', rate: '1000/day' }] });
    const written = fields('draft-8', throttle, throttle.check('t'));
    assert.deepEqual(parsed(written['ratelimit-policy']), [['second', { q: 2, w: 1 }], ['day', { q: 1000, w: 86_400 }]]);
    assert.deepEqual(parsed(written.ratelimit), [['second', { r: 1, t: 1 }]]);
    const other = made({ rules: [{ name: 'a', rate: '5/s' }, { name: 'b', rate: '5/minute' }] }).throttle;
    other.check('t', 5);
    assert.deepEqual(parsed(fields('draft-8', other, other.check('t')).ratelimit), [['b', { r: 0, t: 12 }]]);
  });

  it('tell rules with one burst apart, where the throttle does', () => {
    const { clock, throttle } = made({ rules: [{ name: 'a', rate: '5/s' }, { name: 'b', rate: '5/minute' }] });
    const ask = (units = 1) => parsed(fieldsOf('draft-8', throttle, askQuickly(throttle, 't', units, 0)).ratelimit);
    assert.deepEqual(ask(), [['a', { r: 4, t: 1 }]]);
    clock.advance(1000);
    assert.deepEqual(ask(), [['b', { r: 3, t: 12 }]]);
    assert.deepEqual(parsed(fields('draft-8', throttle, throttle.peek('t')).ratelimit), [['a', { r: 3, t: 1 }]]);
    assert.deepEqual(ask(3), [['b', { r: 0, t: 12 }]]);
    assert.deepEqual(ask(), [['b', { r: 0, t: 11 }]]);
  });

  it('are made anew when anything in them is another', () => {
    const { clock, throttle } = made({ rate: '1/minute' });
    const headers = new Headers('draft-8', false, new Map([['rule1', { name: 'a', quota: 1, windowMs: 60_000 }], ['b', { name: 'b', quota: 1, windowMs: 60_000 }]]));
    const first = throttle.check('t');
    const written = (/** @type {Decision} */ decision, index = 0) => headers.fields(new Decided(decision, index)).at(-1);
    assert.equal(written(first), '"a";r=0;t=60');
    assert.equal(written(first), '"a";r=0;t=60');
    assert.equal(written(first, 1), '"b";r=0;t=60');
    assert.equal(written({ ...first, remaining: 7 }, 1), '"b";r=7;t=60');
    clock.advance(20_000);
    assert.equal(written(throttle.peek('t'), 1), '"b";r=0;t=40');
    clock.advance(40_000);
    assert.equal(written(throttle.peek('t'), 1), '"b";r=1');
    assert.equal(written(first, 1), '"b";r=0;t=60');
  });

  it('have no time when the bucket is full, and nothing left in debt', () => {
    const { throttle } = made({ rate: '10/s' });
    assert.deepEqual(parsed(fields('draft-8', throttle, throttle.peek('t')).ratelimit), [['rule1', { r: 10 }]]);
    throttle.debit('t', 55);
    assert.deepEqual(parsed(fields('draft-8', throttle, throttle.check('t')).ratelimit), [['rule1', { r: 0, t: 5 }]]);
  });

  it('quote names of any kind', () => {
    const percent = (/** @type {string} */ text) => encodeURIComponent(text);
    for (const name of ['qu"ote', 'back\\slash', 'blank s', 'ü', '50% ;q=1', '日本']) {
      const { throttle } = made({ rules: [{ name, rate: '5/s' }] });
      const written = fields('draft-8', throttle, throttle.check('t'));
      const [[shown, parameters]] = parsed(written['ratelimit-policy']);
      assert.deepEqual([shown, parameters], [/^[\x20-\x7e]*$/.test(name) ? name : percent(name), { q: 5, w: 1 }]);
      assert.equal(parsed(written.ratelimit)[0][0], shown);
    }
  });

  it('have numbers that fit', () => {
    const { throttle } = made({ rate: '1/100 years', burst: 2 ** 40 });
    throttle.debit('t', 2 ** 40);
    const written = fields('draft-8', throttle, throttle.check('t'));
    assert.deepEqual(parsed(written['ratelimit-policy'])[0][1].q, 2 ** 40);
    assert.equal(parsed(written.ratelimit)[0][1].r, 0);
  });

  it('of earlier drafts, and of habit', () => {
    const { throttle } = made({ rate: '10/s' });
    const seven = fields('draft-7', throttle, throttle.check('t', 4));
    assert.deepEqual(seven, { 'ratelimit-policy': '10;w=1', ratelimit: 'limit=10, remaining=6, reset=1' });
    const before = Date.now() / 1000;
    const six = fields('draft-6', throttle, throttle.check('t', 1), true);
    const { 'x-ratelimit-reset': reset, ...rest } = six;
    assert.deepEqual(rest, {
      'ratelimit-policy': '10;w=1',
      'ratelimit-limit': '10',
      'ratelimit-remaining': '5',
      'ratelimit-reset': '1',
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '5',
    });
    assert.ok(Number(reset) >= before + 1 && Number(reset) <= Date.now() / 1000 + 2);
  });

  it('are none without rules', () => {
    const { throttle } = made({ rate: 'unlimited' });
    assert.deepEqual(fields('draft-8', throttle, throttle.check('t'), true), {});
  });

  it('retry after whole seconds, rounded up', () => {
    const { clock, throttle } = made({ rate: '1 per 3 s' });
    throttle.check('t');
    for (const [step, seconds] of [[0, 3], [0.001, 3], [1000, 2], [1900, 1]]) {
      clock.advance(step);
      assert.equal(retryAfter(throttle.check('t')), seconds);
    }
  });

  it('of a problem', () => {
    const body = JSON.parse(problem(429, ['daily'], 5));
    assert.match(body.type, /^https:\/\/iana\.org\/assignments\/http-problem-types#quota/);
    assert.deepEqual([body.status, body['violated-policies']], [429, ['daily']]);
    assert.match(body.detail, /5 s/);
  });
});
