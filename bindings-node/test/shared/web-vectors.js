// Runs tests/vectors/web.json, HTTP middleware, against an implementation: decision by decision, and over HTTP
// through the adapters of frameworks. README.md there says what the file means.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { describe, it } = require('node:test');

const { OPEN } = require('../../api/middleware.js');
const { Middleware } = require('../../web/middleware.js');
const { nodeReader } = require('../../web/reader.js');
const { start, usualRefusal } = require('./web.js');

/** @typedef {typeof import('../../index.js')} Dthrottle */
/** @typedef {any} Json Whatever a vector holds. */

const text = readFileSync(join(__dirname, '../../../tests/vectors/web.json'), 'utf8');
/** @type {{ cases: Json[], bad: Json[] }} */
const vectors = JSON.parse(text);

/**
 * Whether no adapter in JavaScript makes such a request: a limit of a route has a domain of its own, where
 * Python has a scope, and a server can always wait.
 * @param {Json} step
 */
const isInexpressible = ({ request = {} }) => request.scope !== undefined || request.can_delay === false;

/** How many steps of each case are left out for that, with those behind them. */
const STEPS_LEFT_OUT = { scopes: 3, 'a server that cannot wait': 2, 'delayed refusals': 1 };

/** Whether a case cannot be run over HTTP: a response would have to wait for a real clock. */
const isDelayed = (/** @type {Json} */ { steps }) => steps.some((/** @type {Json} */ step) => step.end_delay !== undefined);

const PEER = '203.0.113.7';

/** @param {string} name */
const camel = (name) => name.replace(/_./g, (pair) => pair[1].toUpperCase());

/**
 * An option's name in JavaScript, where its unit is a part of it.
 * @param {string} name
 */
const named = (name) => (name === 'max_delay' ? 'maxDelayMs' : camel(name));

/**
 * Options as JavaScript has them.
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
 * A case in motion: its options for an implementation, and a clock that goes from step to step.
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
      // A number of milliseconds has no room for a nanosecond of a late time, but for one of a difference.
      clock.advance((step.at_ns - now) / 1e6);
      now = step.at_ns;
    },
  };
}

/**
 * What middleware takes for a throttle, and opens one of its own by the options.
 * @param {Dthrottle} dthrottle
 * @returns {Json}
 */
function openerOf(dthrottle) {
  const open = Reflect.get(dthrottle.Throttle, OPEN).bind(dthrottle.Throttle);
  const opener = { [OPEN]: open, domain: () => opener };
  return opener;
}

/**
 * A request of Node, as far as middleware reads one.
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
 * What becomes of a request, as the vectors write it; names of fields are in lower case here.
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
 * Runs all cases decision by decision, without a server.
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
      // A number has no room for other late times.
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
          // Delays are in milliseconds here.
          const all = field === 'max_delay' ? [] : says;
          for (const said of all) assert.ok(error.message.includes(named(said)), error.message);
          return true;
        });
      });
    }
  });
}

/** Fields of responses that have nothing to do with throttling. */
const isOurs = (/** @type {string} */ name) => /ratelimit|^retry-after$/.test(name);

/**
 * Runs all cases that wait for nothing, over HTTP.
 * @param {string} label
 * @param {Dthrottle} dthrottle
 * @param {string} kind The framework.
 * @param {boolean} [isOwn]
 */
function testResponses(label, dthrottle, kind, isOwn = false) {
  describe(`responses of ${kind}, ${label}`, () => {
    const cases = vectors.cases.filter((vector) => !isDelayed(vector) && toSteps(vector).length > 0);

    it('responses are compared for all vectors without a delay', () => {
      // Two more than are delayed: all their requests have a scope, or a server that cannot wait.
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
            compare(response, step.expect, options.body === undefined ? usualRefusal(kind, step.expect.status) : undefined);
            // What is refunded then must be before the next request.
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
 * Makes a request from the address that a vector says.
 * @param {import('./web.js').Web} web
 * @param {Json} vector
 * @param {Json} request
 * @param {number} status What the application answers.
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
 * @param {{ type: string, body: string }} [usual] What a refusal has where no option says what its body is.
 */
function compare({ status, headers, body }, expected, usual) {
  const found = Object.fromEntries(Object.entries(headers).filter(([name]) => isOurs(name)));
  const { fields = [] } = lower(expected);
  const { 'content-type': type, 'content-length': length, ...rest } = Object.fromEntries(fields);
  assert.deepEqual(found, rest);
  if (expected.action !== 'refuse') return;
  assert.equal(status, expected.status);
  assert.equal(body, usual?.body ?? expected.body);
  assert.deepEqual([headers['content-type'], headers['content-length']], usual ? [usual.type, String(usual.body.length)] : [type, length]);
}

module.exports = { testDecisions, testResponses };
