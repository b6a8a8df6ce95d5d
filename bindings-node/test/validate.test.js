// Tests that misuse is reported once, with a code that docs/node.md explains.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { readFileSync, readdirSync } = require('node:fs');
const http = require('node:http');
const { join } = require('node:path');
const { describe, it } = require('node:test');

const { ManualClock, Throttle } = require('../index.js');
const { throttle } = require('../web/express.js');
const { CHECKS } = require('../web/validate.js');
const { ask, kinds, start, using, warnings } = require('./shared/web.js');

/** @typedef {any} Any */
/** @type {Any} */
const make = throttle;
/** @param {string} name @returns {Any} */
const need = (name) => require(name);

/** Creates a throttle that refuses none of the requests of these tests. */
const many = () => new Throttle({ rate: '1000/s', clock: new ManualClock() });

/**
 * The codes that are reported during three requests to an application.
 * @param {(request: Any, response: Any) => void} app
 * @param {http.RequestOptions} [options]
 */
async function codes(app, options) {
  const server = http.createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  try {
    const emitted = await warnings(async () => {
      for (let i = 0; i < 3; i += 1) assert.equal((await ask(port, '/', options)).status, 200);
    });
    return emitted.map(({ code }) => code);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** @param {Any} app */
function answering(app) {
  app.use((/** @type {Any} */ _request, /** @type {Any} */ response) => response.end());
  return app;
}

const forwarded = { headers: { 'X-Forwarded-For': '203.0.113.7' } };

describe('reports of misuse', () => {
  for (const name of ['express', 'express4']) {
    /** @param {Any} trust @param {Any[]} middleware */
    const app = (trust, ...middleware) => {
      const made = need(name)();
      if (trust !== undefined) made.set('trust proxy', trust);
      for (const each of middleware) made.use(each);
      return answering(made);
    };

    it(`${name}: trust proxy "true" is reported`, async () => {
      assert.deepEqual(await codes(app(true, make(many())), forwarded), ['DTHROTTLE_TRUST_PROXY']);
      assert.deepEqual(await codes(app(true, make(many(), { validate: false })), forwarded), []);
      assert.deepEqual(await codes(app(true, make(many(), { validate: { trustProxy: false } })), forwarded), []);
      assert.deepEqual(await codes(app(true, make(many(), { trustedProxies: 1 })), forwarded), []);
      assert.deepEqual(await codes(app(true, make(many(), { tag: () => 't' })), forwarded), []);
      assert.deepEqual(await codes(app(1, make(many())), forwarded), []);
    });

    it(`${name}: a trusted proxy is not reported`, async () => {
      const throttled = make(new Throttle({ rate: '1/day', clock: new ManualClock() }));
      await assert.rejects(codes(app('loopback', throttled), forwarded), /429 !== 200/);
      assert.equal(throttled.domain.peek(Buffer.from([203, 0, 113, 7])).remaining, 0);
    });

    it(`${name}: X-Forwarded-For from an untrusted proxy is reported`, async () => {
      assert.deepEqual(await codes(app(undefined, make(many())), forwarded), ['DTHROTTLE_FORWARDED']);
      assert.deepEqual(await codes(app(undefined, make(many()))), []);
    });

    it(`${name}: a request that is counted twice is reported`, async () => {
      const one = many();
      const middleware = make(one);
      assert.deepEqual(await codes(app(undefined, middleware, middleware)), ['DTHROTTLE_DOUBLE_COUNT']);
      assert.deepEqual(await codes(app(undefined, make(one), make(one, { tag: () => 'somebody else' }))), []);
      assert.deepEqual(await codes(app(undefined, make('9/s', { table: false }), make('8/s', { table: false }))), []);
      assert.deepEqual(await codes(app(undefined, make(many()), make(many()))), []);
      assert.deepEqual(await codes(app(undefined, make(one), make({ rate: '5/s', domain: 'x', clock: new ManualClock() }))), []);
    });

    it(`${name}: a middleware made for every request is reported once`, async () => {
      const made = need(name)();
      made.use((/** @type {Any} */ request, /** @type {Any} */ response, /** @type {Any} */ next) => make(many())(request, response, next));
      assert.deepEqual(await codes(answering(made)), ['DTHROTTLE_CREATED_IN_HANDLER']);
      const failing = need(name)();
      const tag = () => assert.fail('broken');
      failing.use((/** @type {Any} */ request, /** @type {Any} */ response, /** @type {Any} */ next) => make(many(), { tag })(request, response, next));
      const expected = ['DTHROTTLE_CREATED_IN_HANDLER', 'DTHROTTLE_FAILED'];
      assert.deepEqual(await codes(answering(failing)), expected, 'each calling line must be reported once');
      const quiet = need(name)();
      quiet.use((/** @type {Any} */ request, /** @type {Any} */ response, /** @type {Any} */ next) => make(many(), { validate: { createdInHandler: false } })(request, response, next));
      assert.deepEqual(await codes(answering(quiet)), []);
    });
  }

  it('a middleware made for every request limits requests only with a named table, as its warning says', async () => {
    /** @param {Any} options */
    const statuses = async (options) => {
      const app = need('express')();
      app.use((/** @type {Any} */ request, /** @type {Any} */ response, /** @type {Any} */ next) => make({ rate: '1/day', ...options })(request, response, next));
      const seen = /** @type {number[]} */ ([]);
      const [warning] = await warnings(() => using(answering(app), async (get) => {
        for (let i = 0; i < 3; i += 1) seen.push((await get()).status);
      }));
      return [seen, /with table: false, each has an empty table and refuses nobody/.test(warning.message)];
    };
    assert.deepEqual(await statuses({ table: false }), [[200, 200, 200], true]);
    process.env.DTHROTTLE_FRESH_TABLES = '1';
    try {
      assert.deepEqual(await statuses({ table: 'created-in-handler' }), [[200, 429, 429], false]);
    } finally {
      delete process.env.DTHROTTLE_FRESH_TABLES;
    }
  });

  it('an IPv6 address as a tag is reported', async () => {
    const app = answering(need('express')().use(make(many(), { keyGenerator: () => '2001:db8::1' })));
    assert.deepEqual(await codes(app), ['DTHROTTLE_IPV6_TAG']);
    assert.deepEqual(await codes(answering(need('express')().use(make(many(), { tag: () => 'a:b:c' })))), []);
  });

  it('Koa and Fastify that trust every proxy are reported', async () => {
    const koa = new (need('koa'))({ proxy: true });
    koa.use(need('../web/koa.js').throttle(many()));
    koa.use((/** @type {Any} */ context) => (context.body = ''));
    assert.deepEqual(await codes(koa.callback(), forwarded), ['DTHROTTLE_TRUST_PROXY']);
    const counted = new (need('koa'))({ proxy: true, maxIpsCount: 1 });
    counted.use(need('../web/koa.js').throttle(many()));
    counted.use((/** @type {Any} */ context) => (context.body = ''));
    assert.deepEqual(await codes(counted.callback(), forwarded), []);
    for (const [trustProxy, expect] of /** @type {[Any, string[]][]} */ ([[true, ['DTHROTTLE_TRUST_PROXY']], [1, ['DTHROTTLE_FORWARDED']], ['127.0.0.1', []]])) {
      const app = need('fastify')({ trustProxy });
      await app.register(need('../web/fastify.js').throttle, { throttle: many() });
      app.get('/', async () => '');
      await app.ready();
      assert.deepEqual(await codes((request, response) => app.routing(request, response), forwarded), expect);
    }
  });

  it('correct use emits no warning', async () => {
    for (const kind of kinds) {
      const emitted = await warnings(async () => {
        const web = await start(kind, { rate: '10/s', table: false, maxDelayMs: 10, skipFailedRequests: true });
        await web.statuses(3);
        web.close();
      });
      assert.deepEqual(emitted, [], kind);
    }
  });

  it('docs/node.md has a section for every code that core or the package reports', () => {
    const page = readFileSync(join(__dirname, '../../docs/node.md'), 'utf8');
    const folder = join(__dirname, '../../core/src/web');
    const sources = readdirSync(folder).filter((name) => name.endsWith('.rs')).map((name) => readFileSync(join(folder, name), 'utf8'));
    const found = Array.from(sources.join('').matchAll(/"(DTHROTTLE_[A-Z0-9_]+)"/g), ([, code]) => code);
    assert.ok(found.includes('DTHROTTLE_EARLIER_PROCESS'));
    for (const code of new Set([...Object.values(CHECKS), 'DTHROTTLE_FAILED', 'DTHROTTLE_NO_TAG', ...found])) {
      assert.match(page, new RegExp(`^### ${code}$`, 'm'));
    }
    for (const check of Object.keys(CHECKS)) assert.ok(page.includes(`\`${check}\``), check);
  });
});
