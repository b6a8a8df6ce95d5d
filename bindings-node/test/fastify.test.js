// Tests of the plugin for Fastify, with options of routes.
'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { ManualClock, Throttle } = require('../index.js');
/** @type {any} */
const { throttle } = require('../web/fastify.js');
const { warnings } = require('./shared/web.js');

/** @typedef {any} Any */
/** @type {Any} */
const fastify = require('fastify');

/**
 * @param {Any} options The options of the plugin.
 * @param {Record<string, Any>} routes The `config.throttle` of each route, by its URL.
 */
async function made(options, routes) {
  const app = fastify();
  await app.register(throttle, options);
  for (const [url, own] of Object.entries(routes)) {
    app.get(url, own === undefined ? {} : { config: { throttle: own } }, async () => 'hello');
  }
  const get = async (/** @type {string} */ url, method = 'GET') => (await app.inject({ method, url })).statusCode;
  const many = async (/** @type {string} */ url, /** @type {number} */ count) => {
    const statuses = [];
    for (let i = 0; i < count; i += 1) statuses.push(await get(url));
    return statuses;
  };
  return { app, get, many };
}

describe('routes of Fastify', () => {
  it('a route may have its own rules or none', async () => {
    const { many, get } = await made(
      { rate: '3/day', clock: new ManualClock() },
      { '/a': undefined, '/b': undefined, '/free': false, '/login': { rate: '1/day' }, '/rate': '2/day', '/same': true },
    );
    assert.deepEqual(await many('/login', 2), [200, 429]);
    assert.deepEqual(await many('/rate', 3), [200, 200, 429]);
    assert.deepEqual(await many('/free', 5), Array(5).fill(200));
    assert.deepEqual([await get('/a'), await get('/b'), await get('/same'), await get('/a')], [200, 200, 200, 429]);
    assert.equal(await get('/no/such/route'), 429, 'a request without a route must be limited');
  });

  it('the module itself is the plugin for require() and import', async () => {
    for (const plugin of [require('../web/fastify.js'), import('../web/fastify.js'), (await import('../web/fastify.js')).default]) {
      const app = fastify();
      await app.register(/** @type {Any} */ (plugin), { rate: '1/day', clock: new ManualClock() });
      app.get('/', async () => 'hello');
      assert.deepEqual([(await app.inject('/')).statusCode, (await app.inject('/')).statusCode], [200, 429]);
    }
  });

  it('HEAD requests count together with GET', async () => {
    const { get } = await made({ rate: '9/day', clock: new ManualClock() }, { '/x': { rate: '1/day' } });
    assert.deepEqual([await get('/x', 'HEAD'), await get('/x')], [200, 429]);
  });

  it('a route may have another cost in the shared bucket', async () => {
    const { many, get } = await made({ throttle: new Throttle({ rate: '5/day', clock: new ManualClock() }) }, { '/a': undefined, '/dear': { cost: 4 } });
    assert.deepEqual(await many('/dear', 2), [200, 429]);
    assert.deepEqual([await get('/a'), await get('/a')], [200, 429]);
  });

  it('global: false limits only routes with config.throttle', async () => {
    const { many } = await made({ global: false, clock: new ManualClock() }, { '/a': undefined, '/b': { rate: '1/day' }, '/c': { rate: '1/day' } });
    assert.deepEqual(await many('/a', 3), [200, 200, 200]);
    assert.deepEqual(await many('/b', 2), [200, 429]);
    assert.deepEqual(await many('/c', 2), [200, 429]);
  });

  it('header fields name the route', async () => {
    const { app } = await made({ rate: '3/day', clock: new ManualClock() }, { '/login/:id': { rate: '1/day' } });
    const { headers } = await app.inject('/login/5');
    assert.equal(headers['ratelimit-policy'], '"GET /login/:id";q=1;w=86400');
  });

  it('wrong options of a route are an error when it is added', async () => {
    for (const [own, field] of /** @type {[Any, string][]} */ ([[{ rate: 'x' }, 'rate'], [{ rat: '1/s' }, 'rat'], [[], 'config.throttle']])) {
      await assert.rejects(made({ rate: '3/day', table: false }, { '/': own }), { field, message: /^GET \/: / });
    }
    await assert.rejects(made({ rate: '3/day', table: false, global: 5 }, {}), { field: 'global' });
    await assert.rejects(made({}, {}), { field: 'rate' });
    // `allow` of the plugin fits its own tags, which are names, but not those of the route.
    const named = { rate: '3/day', table: false, tag: 'header:X-Client', allow: ['alice'] };
    await assert.rejects(made(named, { '/': { tag: 'address' } }), { field: 'allow', message: /^GET \/: `allow` must have only addresses .*, got "alice"/ });
    await made(named, { '/': { tag: 'address', allow: ['127.0.0.1'] } });
  });

  it('allow of the plugin is checked against the tags of each route', async () => {
    const shared = { rate: '1/day', clock: new ManualClock(), allow: ['alice', '10.0.0.0/8'] };
    const error = (/** @type {string} */ where) => ({ code: 'DTHROTTLE_CONFIG', field: 'allow', message: RegExp(`^${where}\`allow\` must have only addresses .*, got "alice"$`) });
    const client = (/** @type {Any} */ { headers }) => headers['x-client'];
    const { app, many } = await made({ ...shared, global: false }, { '/': { keyGenerator: client }, '/tag': { tag: 'header:X-Client' }, '/all': undefined });
    for (const url of ['/', '/tag']) {
      const get = async (/** @type {string} */ name) => (await app.inject({ url, headers: { 'X-Client': name } })).statusCode;
      assert.deepEqual([await get('alice'), await get('alice')], [200, 200]);
      assert.deepEqual([await get(`bob ${url}`), await get(`bob ${url}`)], [200, 429]);
    }
    assert.deepEqual(await many('/all', 2), [200, 200]);
    // Routes whose tags are addresses, and a global plugin whose tags are addresses.
    for (const own of [true, {}, '1/day', { cost: 0 }, { tag: 'address' }]) {
      await assert.rejects(made({ ...shared, global: false }, { '/named': { keyGenerator: client }, '/': own }), error('GET /: '));
    }
    await assert.rejects(made(shared, { '/': { keyGenerator: client } }), error(''));
    await assert.rejects(made({ ...shared, global: false, allow: ['10.0.0.1/8'] }, {}), { field: 'allow' });
  });

  it('tag or keyGenerator of a route replaces that of the plugin', async () => {
    const constant = (/** @type {string} */ tag) => () => tag;
    const clock = new ManualClock();
    for (const [name, other] of [['tag', 'keyGenerator'], ['keyGenerator', 'tag'], ['tag', 'tag']]) {
      const { get } = await made({ throttle: new Throttle({ rate: '1/day', clock }), [name]: constant('all') }, { '/': undefined, '/own': { [other]: constant('own') } });
      assert.deepEqual([await get('/'), await get('/own'), await get('/own')], [200, 200, 429]);
    }
    const { app } = await made({ rate: '1/day', clock, keyGenerator: constant('all') }, { '/unsaid': { rate: '1/day', tag: undefined } });
    const from = async (/** @type {string} */ remoteAddress) => (await app.inject({ url: '/unsaid', remoteAddress })).statusCode;
    assert.deepEqual([await from('10.0.0.1'), await from('10.0.0.2')], [200, 429]);
    await assert.rejects(made({ rate: '1/day' }, { '/': { tag: constant('a'), keyGenerator: constant('b') } }), { field: 'keyGenerator' });
  });

  it('an address whose bytes spell an allowed name is not exempt in a late route', async () => {
    const app = fastify();
    app.register(throttle, { global: false, rate: '1/day', clock: new ManualClock(), allow: ['root'] });
    app.get('/', { config: { throttle: true } }, async () => 'hello');
    const get = async () => (await app.inject({ url: '/', remoteAddress: '114.111.111.116' })).statusCode;
    const [emitted] = await warnings(async () => assert.deepEqual([await get(), await get()], [200, 429]));
    assert.match(emitted.message, /config\.throttle of \/ failed: `allow` must have only addresses .*, got "root"/);
  });

  it('a refusal goes to the nearest error handler, with its header fields set', async () => {
    const app = fastify();
    const answer = (/** @type {string} */ by) => async (/** @type {Any} */ error) => ({ by, code: error.code, status: error.statusCode, rule: error.decision.rule });
    app.setErrorHandler(answer('application'));
    await app.register(throttle, { rate: '1/day', clock: new ManualClock() });
    const own = { config: { throttle: '1/day' } };
    app.get('/', async () => 'hello');
    app.get('/route', { ...own, errorHandler: (/** @type {Any} */ _error, /** @type {Any} */ _request, /** @type {Any} */ reply) => reply.code(503).type('text/html').send('<p>route') }, async () => 'hello');
    await app.register(async (/** @type {Any} */ child) => {
      child.setErrorHandler(answer('child'));
      child.get('/child', own, async () => 'hello');
    });
    for (const [url, status, type, body] of [
      ['/', 429, 'application/json; charset=utf-8', '{"by":"application","code":"DTHROTTLE_REFUSED","status":429,"rule":"rule1"}'],
      ['/child', 429, 'application/json; charset=utf-8', '{"by":"child","code":"DTHROTTLE_REFUSED","status":429,"rule":"rule1"}'],
      ['/route', 503, 'text/html', '<p>route'],
    ]) {
      assert.equal((await app.inject(url)).statusCode, 200);
      const { statusCode, headers, body: text } = await app.inject(url);
      assert.deepEqual([statusCode, headers['content-type'], text, headers['retry-after']], [status, type, body, '86400']);
      assert.match(headers.ratelimit, /;r=0;t=86400$/);
    }
  });

  it('a refusal with the option body calls no error handler', async () => {
    for (const [own, expected] of /** @type {[Any, string][]} */ ([[{ wait: true }, '{"wait":true}'], [async () => 'later', 'later']])) {
      const app = fastify();
      app.setErrorHandler(() => assert.fail('the error handler was called'));
      await app.register(throttle, { rate: '1/day', body: own, clock: new ManualClock() });
      app.get('/', async () => 'hello');
      await app.inject('/');
      const { statusCode, body } = await app.inject('/');
      assert.deepEqual([statusCode, body], [429, expected]);
    }
  });

  it('the option handler responds to a refusal', async () => {
    const handler = (/** @type {Any} */ _request, /** @type {Any} */ reply, /** @type {Any} */ _next, /** @type {Any} */ refused) =>
      reply.code(418).send({ after: refused.decision.retryAfterMs });
    const { app, get } = await made({ rate: '1/day', clock: new ManualClock(), handler }, { '/': undefined });
    await get('/');
    const { statusCode, headers, body } = await app.inject('/');
    assert.deepEqual([statusCode, headers['retry-after'], body], [418, '86400', '{"after":86400000}']);
    const broken = await made({ rate: '1/day', clock: new ManualClock(), handler: () => assert.fail('broken') }, { '/': undefined });
    assert.deepEqual(await broken.many('/', 2), [200, 500]);
  });

  it('a request is counted once, by the nearest plugin', async () => {
    const app = fastify();
    await app.register(throttle, { rate: '100/day', domain: 'all', clock: new ManualClock() });
    await app.register(async (/** @type {Any} */ child) => {
      await child.register(throttle, { rate: '50/day', domain: 'child', clock: new ManualClock() });
      child.get('/login', { config: { throttle: { rate: '2/day' } } }, async () => 'hello');
    });
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await app.inject('/login')).statusCode);
    assert.deepEqual(statuses, [200, 200, 429]);
  });

  it('a route that was added before the plugin was loaded has its rules', async () => {
    const app = fastify();
    app.register(throttle, { global: false, clock: new ManualClock() });
    app.get('/login', { config: { throttle: '1/day' } }, async () => 'hello');
    app.get('/free', { config: { throttle: false } }, async () => 'hello');
    app.get('/wrong', { config: { throttle: { rat: 1 } } }, async () => 'hello');
    const get = async (/** @type {string} */ url) => (await app.inject(url)).statusCode;
    assert.deepEqual([await get('/login'), await get('/login'), await get('/free'), await get('/free')], [200, 429, 200, 200]);
    const [emitted, ...more] = await warnings(async () => assert.deepEqual([await get('/wrong'), await get('/wrong')], [200, 200]));
    assert.match(emitted.message, /config\.throttle of \/wrong failed: `rat` is an unknown option; did you mean `rate`\?/);
    assert.deepEqual(more, []);
  });

  it('header tags work in injected requests', async () => {
    const { app } = await made({ rate: '1/day', tag: 'header:X-Client', clock: new ManualClock() }, { '/': undefined });
    const get = async (/** @type {string} */ client) => (await app.inject({ url: '/', headers: { 'X-Client': client } })).statusCode;
    assert.deepEqual([await get('a'), await get('a'), await get('b')], [200, 429, 200]);
  });
});
