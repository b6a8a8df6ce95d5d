// Runs the vectors of HTTP middleware (tests/vectors/web.json) against an implementation, by single decisions and over
// HTTP with the adapters of frameworks. README.md there describes the file.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { describe, it } = require('node:test');

const { OPEN } = require('../../api/middleware.js');
const { Middleware } = require('../../web/middleware.js');
const { nodeReader } = require('../../web/reader.js');
const { start, defaultRefusal } = require('./web.js');

/** @typedef {typeof import('../../index.js')} Dthrottle */
/** @typedef {any} Json Whatever a vector holds. */

const text = readFileSync(join(__dirname, '../../../tests/vectors/web.json'), 'utf8');
/** @type {{ cases: Json[], bad: Json[] }} */
const vectors = JSON.parse(text);

/**
 * Whether no adapter in JavaScript makes such a request: a scope, which exists only in Python, or a server that
 * cannot wait.
 * @param {Json} step
 */
const isInexpressible = ({ request = {} }) => request.scope !== undefined || request.can_delay === false;

/** The number of steps of each case that are skipped for that reason, including later steps. */
const STEPS_LEFT_OUT = { scopes: 3, 'a server that cannot wait': 2, 'delayed refusals': 1 };

/** Whether a case cannot be run over HTTP, because its responses wait for a real clock. */
const isDelayed = (/** @type {Json} */ { steps }) => steps.some((/** @type {Json} */ step) => step.end_delay !== undefined);

const PEER = '203.0.113.7';

/** @param {string} name */
const camel = (name) => name.replace(/_./g, (pair) => pair[1].toUpperCase());

/**
 * The JavaScript name of an option, which may contain its unit.
 * @param {string} name
 */
const named = (name) => (name === 'max_delay' ? 'maxDelayMs' : camel(name));

/**
 * Converts options to JavaScript.
 * @param {Record<string, Json>} options
 */
function toOptions(options) {
  return Object.fromEntries(Object.entries(options).map(([name, value]) => {
    if (name === 'max_delay') return ['maxDelayMs', value * 1000];
    return [named(name), toValue(name, value)];
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

/**
 * The steps of a case that JavaScript can express.
 * @param {Json} vector
 * @returns {Json[]}
 */
function toSteps({ steps }) {
  const end = steps.findIndex(isInexpressible);
  return end === -1 ? steps : steps.slice(0, end);
}

/**
 * Prepares a case: its options for an implementation, and a clock that moves from step to step.
 * @param {Dthrottle} dthrottle
 * @param {Json} vector
 * @param {boolean} isOwn Whether middleware finds this dthrottle by itself; others it gets as a throttle.
 */
function setUp(dthrottle, vector, isOwn) {
  const clock = new dthrottle.ManualClock();
  const steps = toSteps(vector);
  /** @type {Json} The request that is asked about. */
  let asked = {};
  /** @type {Json} */
  const options = { ...toOptions(vector.options), ...(isOwn ? {} : { throttle: openerOf(dthrottle) }), clock };
  if (steps.some(({ request }) => request?.cost !== undefined)) {
    Object.assign(options, { cost: () => asked.cost ?? 1 });
  }
  let now = 0;
  return {
    steps,
    options,
    /** @param {Json} step */
    begin(step) {
      asked = step.request ?? {};
      // Advances by the difference, because a late time in milliseconds cannot represent single nanoseconds.
      clock.advance((step.at_ns - now) / 1e6);
      now = step.at_ns;
    },
  };
}

/**
 * An object that middleware accepts as a throttle, but that opens a new one from the options.
 * @param {Dthrottle} dthrottle
 * @returns {Json}
 */
function openerOf(dthrottle) {
  const open = Reflect.get(dthrottle.Throttle, OPEN).bind(dthrottle.Throttle);
  const opener = { [OPEN]: open, domain: () => opener };
  return opener;
}

/**
 * A request of Node with the properties that middleware reads.
 * @param {Json} vector
 * @param {Json} request
 */
function toRequest({ options }, { peer = PEER, forwarded, tag }) {
  const { method, path } = toTarget(options);
  const headers = toHeaders(options, { forwarded, tag });
  return { method, url: path, headers, rawHeaders: Object.entries(headers).flat(), socket: { remoteAddress: peer ?? undefined } };
}

/** @param {Json} options */
const toTarget = ({ methods: [method] = ['GET'], routes: [path] = ['/'] }) => ({ method, path });

/**
 * @param {Json} options
 * @param {Json} request
 * @returns {Record<string, string>}
 */
function toHeaders({ tag: source = '' }, { forwarded = [], tag }) {
  return {
    ...(forwarded.length > 0 ? { 'x-forwarded-for': forwarded.join(', ') } : {}),
    ...(tag === undefined ? {} : { [source.slice('header:'.length).toLowerCase()]: tag }),
  };
}

/**
 * The result of a request in the form of the vectors, with lower-case names of header fields.
 * @param {Middleware} middleware
 * @param {Json} outcome
 */
function written(middleware, outcome) {
  if (outcome === null) return { action: 'none' };
  const { refused, delayMs, taken, values } = outcome;
  const { status, names, values: all, body } = refused ? /** @type {Json} */ (middleware.refusal(outcome, {})) : { names: middleware.fieldNames, values };
  return {
    action: refused ? 'refuse' : ['pass', 'delay'][Number(delayMs > 0)],
    fields: all.map((/** @type {string} */ value, /** @type {number} */ i) => [names[i], value]),
    tag_hex: Buffer.from(middleware.info(outcome).tag).toString('hex'),
    taken,
    ...(refused ? { status, body: Buffer.from(body).toString() } : {}),
    ...(delayMs > 0 ? { delay_ns: Math.round(delayMs * 1e6) } : {}),
  };
}

/** @param {Json} expected */
function lower({ fields, ...rest }) {
  return fields === undefined ? rest : { ...rest, fields: fields.map((/** @type {string[]} */ [name, value]) => [name.toLowerCase(), value]) };
}

/**
 * Runs all cases by single decisions, without a server.
 * @param {string} label
 * @param {Dthrottle} dthrottle
 * @param {boolean} [isOwn]
 */
function testDecisions(label, dthrottle, isOwn = false) {
  describe(`HTTP middleware, ${label}`, () => {
    it('all vectors that JavaScript can express are run', () => {
      assert.ok(vectors.cases.length >= 52 && vectors.bad.length >= 22);
      const leftOut = vectors.cases.map((vector) => [vector.name, vector.steps.length - toSteps(vector).length]);
      assert.deepEqual(Object.fromEntries(leftOut.filter(([, count]) => count > 0)), STEPS_LEFT_OUT);
      // Other late times cannot be represented in milliseconds.
      const times = [...text.matchAll(/"at_ns": ?(\d+)/g)].map(([, digits]) => digits);
      assert.ok(times.length > 150);
      for (const digits of times) assert.equal(BigInt(Number(digits)), BigInt(digits));
    });

    for (const vector of vectors.cases) {
      it(`the decision is as in the vector: ${vector.name}`, () => {
        const { steps, options, begin } = setUp(dthrottle, vector, isOwn);
        const middleware = new Middleware(options, nodeReader);
        /** @type {Json[]} */
        const outcomes = [];
        for (const step of steps) {
          begin(step);
          const outcome = step.request === undefined ? null : middleware.decide(toRequest(vector, step.request));
          outcomes.push(outcome);
          if (step.request !== undefined) assert.deepEqual(written(middleware, outcome), lower(step.expect));
          if (step.end_delay !== undefined) middleware.endDelay(outcomes[step.end_delay], step.gone === true);
          if (step.finish !== undefined) middleware.finish(outcomes[step.finish], step.success === true, {});
        }
      });
    }

    for (const { why, options, field, says } of vectors.bad) {
      it(`wrong options are an error: ${why}`, () => {
        const given = { ...setUp(dthrottle, { options, steps: [] }, isOwn).options };
        assert.throws(() => new Middleware(given, nodeReader), (/** @type {Json} */ error) => {
          assert.equal(error.field, named(field));
          // Delays are in milliseconds in JavaScript.
          const all = field === 'max_delay' ? [] : says;
          for (const part of all) assert.ok(error.message.includes(named(part)), error.message);
          return true;
        });
      });
    }
  });
}

/** Header fields that do not come from the middleware. */
const isOurs = (/** @type {string} */ name) => /ratelimit|^retry-after$/.test(name);

/**
 * Runs all cases without delays over HTTP.
 * @param {string} label
 * @param {Dthrottle} dthrottle
 * @param {string} kind The framework.
 * @param {boolean} [isOwn]
 */
function testResponses(label, dthrottle, kind, isOwn = false) {
  describe(`responses of ${kind}, ${label}`, () => {
    const cases = vectors.cases.filter((vector) => !isDelayed(vector) && toSteps(vector).length > 0);

    it('responses are compared for all vectors without a delay', () => {
      // Besides delayed cases, two are skipped because all their requests have a scope or a server that cannot wait.
      assert.equal(cases.length, vectors.cases.length - vectors.cases.filter(isDelayed).length - 2);
      assert.ok(cases.length >= 47);
    });

    for (const vector of cases) {
      it(`the response is as in the vector: ${vector.name}`, async () => {
        const { steps, options, begin } = setUp(dthrottle, vector, isOwn);
        const web = await start(kind, options);
        try {
          for (const [i, step] of steps.entries()) {
            begin(step);
            if (step.request === undefined) continue;
            const end = steps.find(({ finish }) => finish === i);
            const { response, closed } = await answer(web, vector, step.request, end?.success === false ? 500 : 200);
            compare(response, step.expect, options.body === undefined ? defaultRefusal(kind, step.expect.status) : undefined);
            // Waits for the refund before the next request.
            await closed;
          }
        } finally {
          web.close();
        }
      });
    }
  });
}

/**
 * Makes a request from the address of a vector.
 * @param {import('./web.js').Web} web
 * @param {Json} vector
 * @param {Json} request
 * @param {number} status The status of the application's response.
 */
async function answer(web, { options }, request, status) {
  const { peer = PEER } = request;
  const { method, path } = toTarget(options);
  const arrival = new Promise((resolve) => {
    web.server.prependOnceListener('request', (/** @type {Json} */ { socket }, /** @type {Json} */ response) => {
      Object.defineProperty(socket, 'remoteAddress', { value: peer ?? undefined });
      resolve({ closed: once(response, 'close').then(() => new Promise(setImmediate)) });
    });
  });
  const headers = toHeaders(options, request);
  const response = await web.get(status === 200 ? path : `${path}?status=${status}`, { method, headers });
  return { response, ...(await arrival) };
}

/**
 * @param {import('./web.js').Answer} response
 * @param {Json} expected
 * @param {{ type: string, body: string }} [byDefault] The response without the option `body`.
 */
function compare({ status, headers, body }, expected, byDefault) {
  const found = Object.fromEntries(Object.entries(headers).filter(([name]) => isOurs(name)));
  const { fields = [] } = lower(expected);
  const { 'content-type': type, 'content-length': length, ...rest } = Object.fromEntries(fields);
  assert.deepEqual(found, rest);
  if (expected.action !== 'refuse') return;
  assert.equal(status, expected.status);
  assert.equal(body, byDefault?.body ?? expected.body);
  assert.deepEqual([headers['content-type'], headers['content-length']], byDefault ? [byDefault.type, String(byDefault.body.length)] : [type, length]);
}

module.exports = { testDecisions, testResponses };
