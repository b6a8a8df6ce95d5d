// HTTP middleware, by the vectors of all languages.
'use strict';

const assert = require('node:assert/strict');
const { existsSync, readFileSync } = require('node:fs');
const { join } = require('node:path');
const { describe, it } = require('node:test');

const { ManualClock } = require('../index.js');
const { Middleware } = require('../web/middleware.js');

/** @typedef {any} Json */

const FILE = join(__dirname, '../../tests/vectors/web.json');
/** @type {{ cases: Json[], bad: Json[] }} */
const vectors = existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : { cases: [], bad: [] };

/** Options that JavaScript has by another name, or in milliseconds. */
const NAMES = new Map([
  ['body', 'message'], ['headers', 'standardHeaders'], ['ipv6_prefix', 'ipv6Subnet'], ['max_delay', 'maxDelayMs'], ['status', 'statusCode'],
]);

/** @param {string} name */
const camel = (name) => name.replace(/_./g, (pair) => pair[1].toUpperCase());

/**
 * Options as JavaScript has them.
 * @param {Record<string, Json>} options
 */
function toOptions(options) {
  return Object.fromEntries(Object.entries(options).map(([name, value]) => {
    if (name === 'max_delay') return ['maxDelayMs', value * 1000];
    return [NAMES.get(name) ?? camel(name), toValue(name, value)];
  }));
}

/**
 * @param {string} option
 * @param {Json} value
 * @returns {Json}
 */
function toValue(option, value) {
  if (Array.isArray(value)) return value.map((each) => toValue(option, each));
  if (option === 'body' || typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [camel(key), each]));
}

/** Requests as the vectors write them. */
const reader = {
  paths: () => new Set(['/login']),
  header: (/** @type {Json} */ request) => request.tag,
  peer: (/** @type {Json} */ { peer = '203.0.113.7' }) => peer ?? undefined,
  isGone: () => false,
  forwardedFor: (/** @type {Json} */ { forwarded }) => (forwarded?.length ? forwarded.join(', ') : undefined),
};

/**
 * What becomes of a request, as the vectors write it; names of fields are in lower case here.
 * @param {Middleware} middleware
 * @param {Json} outcome
 */
function written(middleware, outcome) {
  if (outcome === null) return { action: 'none' };
  const { refused, holdMs, taken, values } = outcome;
  const { status, names, values: all, body } = refused ? /** @type {Json} */ (middleware.refusal(outcome, {})) : { names: middleware.fieldNames, values };
  return {
    action: refused ? 'refuse' : ['pass', 'hold'][Number(holdMs > 0)],
    fields: all.map((/** @type {string} */ value, /** @type {number} */ i) => [names[i], value]),
    tag_hex: Buffer.from(middleware.info(outcome).tag).toString('hex'),
    taken,
    ...(refused ? { status, body: Buffer.from(body).toString() } : {}),
    ...(holdMs > 0 ? { wait_ns: Math.round(holdMs * 1e6) } : {}),
  };
}

/** @param {Json} expected */
function lower({ fields, ...rest }) {
  return fields === undefined ? rest : { ...rest, fields: fields.map((/** @type {string[]} */ [name, value]) => [name.toLowerCase(), value]) };
}

describe('HTTP middleware', () => {
  for (const { name, options, steps } of vectors.cases) {
    // What a server in JavaScript never has: a scope, and no way to wait.
    if (steps.some((/** @type {Json} */ { request }) => request?.scope !== undefined || request?.can_wait !== undefined)) continue;
    // A number of JavaScript has no room for these times.
    if (steps.some((/** @type {Json} */ { at_ns: at }) => !Number.isSafeInteger(at))) continue;
    it(name, () => {
      const clock = new ManualClock();
      const cost = steps.some((/** @type {Json} */ { request }) => request?.cost !== undefined) ? { cost: (/** @type {Json} */ request) => request.cost ?? 1 } : {};
      const method = () => options.methods?.[0];
      const middleware = new Middleware({ ...toOptions(options), ...cost, clock }, { ...reader, method });
      /** @type {Json[]} */
      const outcomes = [];
      for (const step of steps) {
        clock.set(step.at_ns / 1e6);
        const outcome = step.request === undefined ? null : middleware.decide(step.request);
        outcomes.push(outcome);
        if (step.request !== undefined) assert.deepEqual(written(middleware, outcome), lower(step.expect));
        if (step.end_hold !== undefined) middleware.endHold(outcomes[step.end_hold], step.gone === true);
        if (step.finish !== undefined) middleware.finish(outcomes[step.finish], step.success === true, {});
      }
    });
  }

  for (const { why, options, field, says } of vectors.bad) {
    it(`refuses ${why}`, () => {
      assert.throws(() => new Middleware({ ...toOptions(options), clock: new ManualClock() }, { ...reader, method: () => 'GET' }), (/** @type {Json} */ error) => {
        assert.equal(error.field, NAMES.get(field) ?? camel(field));
        // Delays are in milliseconds here.
        if (field !== 'max_delay') for (const said of says) assert.ok(error.message.includes(NAMES.get(said) ?? camel(said)), error.message);
        return true;
      });
    });
  }
});
