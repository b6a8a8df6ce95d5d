// Runs the vectors of tests/vectors, which all languages share, against an implementation. README.md there describes
// the files.
'use strict';

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { describe, it } = require('node:test');

/** @typedef {typeof import('../../index.js')} Dthrottle */
/** @typedef {import('../../index.js').Domain} Domain */
/** @typedef {import('../../index.js').Throttle} Throttle */
/** @typedef {any} Json Whatever a vector holds. */

const FOLDER = join(__dirname, '../../../tests/vectors');

/**
 * @param {string} name
 * @returns {Json}
 */
const read = (name) => JSON.parse(readFileSync(join(FOLDER, name), 'utf8'));

/** @type {Map<string, string>} */
const codes = new Map(read('errors.json').map((/** @type {Json} */ row) => [row.kind, row.js]));

const FLOATS = new Map(Object.entries({ NaN, Infinity, '-Infinity': -Infinity }));

/** The JavaScript names of durations in a decision. All other fields have the same name in camel case. */
const DURATIONS = new Map([
  ['delay_ns', 'delayMs'],
  ['retry_after_ns', 'retryAfterMs'],
  ['reset_after_ns', 'resetAfterMs'],
]);

/** The configuration keys with two words. */
const KEYS = [
  'charge_refused',
  'default_name',
  'dry_run',
  'multicast_ttl',
  'packet_keys',
  'retention_bytes',
  'without_secret',
];

/** @param {string} name */
const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

/**
 * Converts an argument of a vector to JavaScript.
 * @param {Json} value
 * @returns {Json}
 */
function argument(value) {
  if (typeof value === 'string') return FLOATS.get(value) ?? value;
  return value?.text ?? value;
}

/**
 * @param {Json} tag
 * @returns {Json}
 */
function tagOf(tag) {
  if (tag?.bytes_hex !== undefined) return Buffer.from(tag.bytes_hex, 'hex');
  return tag?.times === undefined ? tag : tag.repeat.repeat(tag.times);
}

/**
 * Checks for a DthrottleError with the code of a kind.
 * @param {Dthrottle} dthrottle
 * @param {string} kind
 */
function failsWith(dthrottle, kind) {
  return (/** @type {unknown} */ error) => {
    assert.ok(error instanceof Error);
    assert.ok(error instanceof dthrottle.DthrottleError, String(error));
    assert.equal(error.code, codes.get(kind), error.message);
    return true;
  };
}

/**
 * @param {Throttle} throttle
 * @param {Json} name
 */
const domainOf = (throttle, name) => (name === undefined ? throttle : throttle.domain(name));

/**
 * Makes a call of a vector.
 * @param {Domain} domain
 * @param {{ call: string, tag: Json, options: Json, ageMs?: Json }} step
 * @returns {Json}
 */
function make(domain, { call, tag, options, ageMs }) {
  switch (call) {
    case 'check':
      return domain.check(tag, options);
    case 'peek':
      return domain.peek(tag, options);
    case 'allow':
      return domain.allow(tag, options.cost);
    case 'refund':
      return domain.refund(tag, options.cost);
    case 'reset':
      return domain.reset(tag);
    case 'charge_local':
      return domain.chargeLocal(tag, options.cost, ageMs);
    default:
      throw new Error(`a vector with an unknown call: ${call}`);
  }
}

/**
 * @param {Json} actual
 * @param {Json} expected
 */
function sameDecision(actual, expected) {
  for (const [field, value] of Object.entries(expected)) {
    const duration = DURATIONS.get(field);
    if (duration === undefined) {
      assert.equal(actual[camel(field)], value === 'unlimited' ? Infinity : value, field);
    } else {
      const ns = actual[duration] * 1e6;
      const off = Math.abs(ns - value);
      assert.ok(off <= 2 + 1e-12 * value, `${field}: ${ns} instead of ${value}`);
    }
  }
}

/**
 * @param {Json} actual
 * @param {Json} expected
 */
function sameAnswer(actual, expected) {
  if (expected === undefined) return;
  if (typeof expected === 'boolean') assert.equal(actual, expected);
  else sameDecision(actual, expected);
}

/** @param {number | undefined} ns */
const toMs = (ns) => (ns === undefined ? undefined : ns / 1e6);

/**
 * @param {Dthrottle} dthrottle
 * @param {Json} sequence
 */
function runSequence(dthrottle, { config, throttles: names, steps }) {
  const clock = new dthrottle.ManualClock();
  /** @type {Map<string, Throttle>} */
  const throttles = new Map(
    names.map((/** @type {string} */ name) => [name, dthrottle.Throttle.fromToml(config, { clock })]),
  );
  for (const [i, step] of steps.entries()) {
    const throttle = throttles.get(step.throttle ?? names[0]);
    assert.ok(throttle);
    clock.set(step.at_ns / 1e6);
    const options = {
      cost: step.cost,
      maxDelayMs: toMs(step.max_delay_ns),
      partial: step.partial,
      allowDebt: step.allow_debt,
    };
    const call = { ...step, options, ageMs: toMs(step.age_ns) };
    const run = () => make(domainOf(throttle, step.domain), call);
    for (let n = 0; n < (step.repeat ?? 1); n += 1) {
      try {
        if (step.error === undefined) sameAnswer(run(), step.expect);
        else assert.throws(run, failsWith(dthrottle, step.error));
      } catch (error) {
        throw new Error(`step ${i}, time ${n}: ${JSON.stringify(step)}`, { cause: error });
      }
    }
  }
}

/**
 * @param {Dthrottle} dthrottle
 * @param {Json} row
 */
function throttleOfRate(dthrottle, row) {
  const clock = new dthrottle.ManualClock();
  return new dthrottle.Throttle({ rate: row.text ?? argument(row.number), burst: row.burst, clock });
}

/**
 * An object of a vector with keys in camel case.
 * @param {Json} value
 * @returns {Json}
 */
function camelKeys(value) {
  if (Array.isArray(value)) return value.map(camelKeys);
  if (typeof value !== 'object' || value === null) return argument(value);
  const known = (/** @type {string} */ key) => KEYS.includes(key);
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [known(key) ? camel(key) : key, camelKeys(member)]),
  );
}

/**
 * @param {Json} row
 * @param {Throttle} throttle
 */
function sameDomains(row, throttle) {
  for (const [name, rules] of Object.entries(row.domains)) {
    const domain = throttle.domain(name);
    assert.equal(domain.name, name);
    assert.deepEqual(domain.rules.map((rule) => ({ name: rule.name, limit: rule.limit })), rules);
  }
  assert.deepEqual(throttle.rules, throttle.domain('default').rules);
}

/**
 * Checks for the error of a vector. Keys of objects are in camel case.
 * @param {Dthrottle} dthrottle
 * @param {Json} row
 * @param {(text: string) => string} spell
 * @param {number | null} line
 */
function matchesVector(dthrottle, row, spell, line) {
  return (/** @type {Json} */ error) => {
    failsWith(dthrottle, 'config')(error);
    assert.equal(error.field, row.field === null ? undefined : spell(row.field));
    if (line !== null) assert.equal(error.line, line);
    for (const words of row.says) {
      assert.ok(error.message.includes(spell(words)), `${error.message} does not contain ${words}`);
    }
    return true;
  };
}

/**
 * @param {Dthrottle} dthrottle
 * @param {Json} row
 */
function runInput(dthrottle, { call, args, error, expect, closed }) {
  const clock = new dthrottle.ManualClock();
  const throttle = new dthrottle.Throttle({ rate: '10/s', burst: 10, clock });
  if (closed) throttle.close();
  const options = {
    cost: argument(args.cost),
    maxDelayMs: argument(args.max_delay_ms),
    partial: args.partial,
    allowDebt: args.allow_debt,
  };
  const ageMs = argument(args.age_ms);
  const step = { call, tag: tagOf(args.tag), options, ageMs };
  const run = () => {
    if (call === 'advance') return clock.advance(argument(args.ms));
    return make(domainOf(throttle, args.domain), step);
  };
  if (error === null) sameAnswer(run(), expect);
  else assert.throws(run, failsWith(dthrottle, error));
}

/**
 * Defines a test for each vector.
 * @param {string} label
 * @param {Dthrottle} dthrottle
 * @param {'node' | 'wasm'} language
 */
function testVectors(label, dthrottle, language) {
  describe(`vectors: ${label}`, () => {
    for (const sequence of read('sequences.json')) {
      it(`the sequence gives the expected decisions: ${sequence.name}`, () => runSequence(dthrottle, sequence));
    }

    const rates = read('rates.json');
    for (const row of rates.good) {
      it(`a valid rate is accepted: ${JSON.stringify(row.text ?? row.number)}, burst ${row.burst}`, () => {
        const throttle = throttleOfRate(dthrottle, row);
        assert.equal(throttle.check('t', row.limit).limit, row.limit);
        const expected = { allowed: false, limit: row.limit, retry_after_ns: row.retry_after_ns };
        sameDecision(throttle.check('t'), expected);
      });
    }
    for (const row of rates.bad) {
      it(`an invalid rate is an error: ${JSON.stringify(row.text ?? row.number)}, burst ${row.burst}`, () => {
        assert.throws(() => throttleOfRate(dthrottle, row), failsWith(dthrottle, 'config'));
      });
    }

    const configs = read('configs.json');
    for (const row of configs.good) {
      it(`a valid configuration is accepted: ${row.name}`, () => {
        sameDomains(row, dthrottle.Throttle.fromToml(row.toml));
        sameDomains(row, new dthrottle.Throttle(camelKeys(row.object)));
      });
    }
    for (const row of configs.bad) {
      it(`an invalid configuration is an error: ${row.name}`, () => {
        assert.ok(row.toml !== undefined || row.object !== undefined);
        if (row.toml !== undefined) {
          const wrong = matchesVector(dthrottle, row, String, row.line ?? null);
          assert.throws(() => dthrottle.Throttle.fromToml(row.toml), wrong);
        }
        if (row.object !== undefined) {
          const wrong = matchesVector(dthrottle, row, camel, null);
          assert.throws(() => new dthrottle.Throttle(camelKeys(row.object)), wrong);
        }
      });
    }

    for (const row of read('inputs.json')) {
      if (!row.languages.includes(language)) continue;
      it(`the input is handled as the vector says: ${row.name}`, () => runInput(dthrottle, row));
    }
  });
}

module.exports = { codes, failsWith, sameDecision, testVectors };
