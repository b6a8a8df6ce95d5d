// Tests of middleware with the arguments (request, response, next): several throttles, handlers and routers. And the
// same for Koa and Hono.
'use strict';

const assert = require('node:assert/strict');
const http = require('node:http');
const { describe, it } = require('node:test');

const { ManualClock, Throttle } = require('../index.js');
const { throttle: koaThrottle } = require('../web/koa.js');
const { throttle: honoThrottle } = require('../web/hono.js');
const { throttle: httpThrottle } = require('../web/http.js');
const { throttle: expressThrottle } = require('../web/express.js');
const { using } = require('./shared/web.js');

/** @typedef {any} Any */
/** @param {string} name @returns {Any} */
const need = (name) => require(name);
/** @type {Any} */
const throttle = expressThrottle;

/** @param {Any} config */
const made = (config) => new Throttle({ ...config, clock: new ManualClock() });

/**
 * Whether a middleware passes a request without a connection.
 * @param {Any} middleware
 * @param {string | undefined} remoteAddress
 * @param {Record<string, string>} [headers]
 * @param {object} [socket]
 */
function passes(middleware, remoteAddress, headers = {}, socket = {}) {
  let passed = false;
  const rawHeaders = Object.entries(headers).flat();
  const request = { method: 'GET', url: '/', headers, rawHeaders, socket: { remoteAddress, ...socket } };
  const response = { getHeader() {}, setHeader() {}, end() {} };
  middleware(request, response, () => (passed = true));
  return passed;
}

for (const name of ['express', 'express4']) {
  describe(name, () => {
    it('one response has the header fields of several throttles', async () => {
      const two = made({ domains: { day: { rate: '9/day' }, second: { rate: '5/s' } } });
      const app = need(name)();
      app.use(throttle(two.domain('day')), throttle(two.domain('second')));
      app.get('/', (/** @type {Any} */ _request, /** @type {Any} */ response) => response.end());
      await using(app, async (get) => {
        const { headers } = await get();
        assert.equal(headers['ratelimit-policy'], '"day";q=9;w=86400, "second";q=5;w=1');
        assert.equal(headers.ratelimit, '"day";r=8;t=9600, "second";r=4;t=1');
      });
      const old = need(name)();
      old.use(throttle(two.domain('day'), { headers: 'draft-7' }), throttle(two.domain('second'), { headers: 'draft-7' }));
      old.get('/', (/** @type {Any} */ _request, /** @type {Any} */ response) => response.end());
      await using(old, async (get) => assert.equal((await get()).headers.ratelimit, 'limit=9, remaining=7, reset=9600'));
    });

    it('request.rateLimit and onRefused have the decision of the throttle', async () => {
      const app = need(name)();
      /** @type {Any[]} */
      const calls = [];
      const onRefused = (/** @type {Any} */ request, /** @type {Any} */ _response, /** @type {Any} */ decision) => calls.push([decision, request.rateLimit.decision]);
      app.use(throttle(made({ rate: '1/day' }), { onRefused }));
      app.get('/', (/** @type {Any} */ { rateLimit }, /** @type {Any} */ response) => {
        assert.equal(rateLimit.decision, rateLimit.decision);
        response.json(rateLimit.decision);
      });
      const twin = made({ rate: '1/day' });
      await using(app, async (get) => {
        assert.deepEqual(JSON.parse((await get()).body), twin.check('t'));
        assert.equal((await get()).status, 429);
      });
      const [[decision, same]] = calls;
      assert.equal(decision, same);
      assert.deepEqual(decision, twin.check('t'));
    });

    it('the header fields are added to those of another library', async () => {
      for (const [field, written] of [['RateLimit', '"other";r=1'], ['RateLimit-Policy', '"other";q=2']]) {
        const app = need(name)();
        app.use((/** @type {Any} */ _request, /** @type {Any} */ response, /** @type {Any} */ next) => next(response.setHeader(field, written) && undefined));
        app.use(throttle(made({ rate: '9/day' })));
        app.get('/', (/** @type {Any} */ _request, /** @type {Any} */ response) => response.end());
        await using(app, async (get) => {
          const headers = /** @type {Any} */ ((await get()).headers);
          const ours = { ratelimit: '"default";r=8;t=9600', 'ratelimit-policy': '"default";q=9;w=86400' };
          const both = { ...ours, [field.toLowerCase()]: `${written}, ${/** @type {Any} */ (ours)[field.toLowerCase()]}` };
          assert.deepEqual({ ratelimit: headers.ratelimit, 'ratelimit-policy': headers['ratelimit-policy'] }, both);
        });
      }
    });

    it('X-RateLimit fields of an earlier throttle stay unchanged', async () => {
      const two = made({ domains: { day: { rate: '9/day' }, second: { rate: '5/s' } } });
      const app = need(name)();
      app.use(throttle(two.domain('day'), { headers: false, legacyHeaders: true }), throttle(two.domain('second'), { legacyHeaders: true }));
      app.get('/', (/** @type {Any} */ _request, /** @type {Any} */ response) => response.end());
      await using(app, async (get) => {
        const { headers } = await get();
        assert.deepEqual([headers['x-ratelimit-limit'], headers['x-ratelimit-remaining'], headers.ratelimit], ['9', '8', '"second";r=4;t=1']);
      });
    });

    it('a middleware in a router sees the whole path, and a route may have its own middleware', async () => {
      const app = need(name)();
      const router = need(name).Router();
      router.use(throttle(made({ rate: '1/day' }), { routes: ['/api/x'] }));
      router.get('/:any', throttle(made({ rate: '3/day' })), (/** @type {Any} */ _request, /** @type {Any} */ response) => response.end());
      app.use('/api', router);
      await using(app, async (get) => {
        assert.deepEqual([(await get('/api/x')).status, (await get('/api/x')).status], [200, 429]);
        assert.deepEqual([(await get('/api/y')).status, (await get('/api/y')).status, (await get('/api/y')).status], [200, 200, 429]);
      });
    });

    it("a client without an address in its proxy's header is counted", async () => {
      const app = need(name)().set('trust proxy', 1);
      app.use(throttle(made({ rate: '1/day' })), (/** @type {Any} */ _request, /** @type {Any} */ response) => response.end());
      await using(app, async (get) => {
        const as = async (/** @type {string} */ entry) => (await get('/', { headers: { 'X-Forwarded-For': entry } })).status;
        assert.deepEqual([await as('unknown'), await as('unknown'), await as('203.0.113.7')], [200, 429, 200]);
      });
    });

    it('the middleware finds the same client as the application', async () => {
      const seen = (/** @type {Any} */ prepare) => async (/** @type {string} */ forwarded) => {
        const app = need(name)();
        const own = prepare(app) ?? app;
        own.use(throttle(made({ rate: '9/s' }), { validate: false }));
        own.get('/', (/** @type {Any} */ request, /** @type {Any} */ response) => response.json(request.rateLimit.key));
        let key;
        await using(app, async (get) => {
          await get(); // the first request determines how later ones find the client
          key = JSON.parse((await get('/', { headers: { 'X-Forwarded-For': forwarded } })).body);
        });
        return key;
      };
      const ip = { configurable: true, get: () => '192.0.2.7' };
      const ways = {
        'nobody is trusted': [() => {}, '127.0.0.1'],
        'a proxy is trusted': [(/** @type {Any} */ app) => void app.set('trust proxy', 1), '203.0.113.9'],
        'the application defines request.ip': [(/** @type {Any} */ app) => void Object.defineProperty(app.request, 'ip', ip), '192.0.2.7'],
        'a middleware defines request.ip': [
          (/** @type {Any} */ app) => void app.use((/** @type {Any} */ request, /** @type {Any} */ _, /** @type {Any} */ next) => {
            if (request.get('X-Forwarded-For')) Object.defineProperty(request, 'ip', ip);
            next();
          }),
          '192.0.2.7',
        ],
        'another application is below it': [
          (/** @type {Any} */ app) => {
            app.set('trust proxy', 1);
            const below = need(name)();
            app.use(below);
            return below;
          },
          '203.0.113.9',
        ],
      };
      for (const [way, [prepare, key]] of Object.entries(ways)) {
        assert.deepEqual(await seen(prepare)('203.0.113.9'), key, way);
      }
    });

    it('header fields show the rule that is nearest to refusing', async () => {
      const clock = new ManualClock();
      const rules = [{ name: 'second', rate: '5/s' }, { name: 'minute', rate: '5/minute' }];
      const app = need(name)();
      app.use(throttle(new Throttle({ rules, clock })), (/** @type {Any} */ _request, /** @type {Any} */ response) => response.end());
      await using(app, async (get) => {
        assert.equal((await get()).headers.ratelimit, '"second";r=4;t=1');
        clock.advance(1000);
        assert.equal((await get()).headers.ratelimit, '"minute";r=3;t=12');
      });
    });

    it('each request has its own rateLimit, also in mounted applications and later callbacks', async () => {
      const app = need(name)();
      const below = need(name)();
      const respond = (/** @type {Any} */ request, /** @type {Any} */ response) =>
        response.json([request.rateLimit?.remaining ?? null, request.limits?.remaining ?? null]);
      app.get('/none', respond);
      app.use(throttle(made({ rate: '9/s' })));
      below.use(throttle(made({ rate: '6/s' }), { requestPropertyName: 'limits' }));
      below.get('/below', respond);
      app.use(below);
      app.get('/again', throttle(made({ rate: '3/s' })), respond);
      app.get('/own', (/** @type {Any} */ request, /** @type {Any} */ response) => {
        request.rateLimit = { remaining: 'mine' };
        respond(request, response);
      });
      app.get('/later', (/** @type {Any} */ request, /** @type {Any} */ response) => setTimeout(respond, 50, request, response));
      const given = need(name)();
      given.request.rateLimit = 'of the application';
      given.use(throttle(made({ rate: '2/s' })));
      given.use(respond);
      app.use('/given', given);
      await using(app, async (get) => {
        const body = async (/** @type {string} */ path) => JSON.parse((await get(path)).body);
        assert.deepEqual(await body('/none'), [null, null]);
        assert.deepEqual(await body('/below'), [8, 5]);
        assert.deepEqual(await body('/again'), [2, 4]);
        assert.deepEqual((await body('/own'))[0], 'mine');
        // Two requests at once on one connection have separate properties.
        const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
        const both = await Promise.all([get('/later', { agent }), get('/later', { agent })]);
        assert.deepEqual(both.map((answer) => answer.body), ['[5,2]', '[4,1]']);
        agent.destroy();
        assert.deepEqual((await body('/given'))[0], 1);
      });
      // Requests of another application do not have the property.
      await using(need(name)().use(respond), async (get) => assert.equal((await get()).body, '[null,null]'));
    });

    it('the option handler responds to a refusal, and its errors go to the application', async () => {
      const handler = (/** @type {Any} */ _request, /** @type {Any} */ response, /** @type {Any} */ _next, /** @type {Any} */ refused) =>
        response.status(refused.status).json({ after: refused.decision.retryAfterMs });
      const app = need(name)();
      app.use(throttle(made({ rate: '1/day' }), { handler, status: 503, requestPropertyName: 'limits' }));
      app.get('/', (/** @type {Any} */ request, /** @type {Any} */ response) => response.json(request.limits.remaining));
      await using(app, async (get) => {
        assert.equal((await get()).body, '0');
        const { status, headers, body } = await get();
        assert.deepEqual([status, headers['retry-after'], body], [503, '86400', '{"after":86400000}']);
      });
      for (const fail of [() => assert.fail('broken'), async () => assert.fail('broken')]) {
        const broken = need(name)();
        broken.use(throttle(made({ rate: '1/day' }), { handler: fail }));
        broken.get('/', (/** @type {Any} */ _request, /** @type {Any} */ response) => response.end());
        broken.use((/** @type {Any} */ error, /** @type {Any} */ _request, /** @type {Any} */ response, /** @type {Any} */ next) =>
          error ? response.status(500).end(error.message) : next());
        await using(broken, async (get) => {
          await get();
          assert.deepEqual([(await get()).body], ['broken']);
        });
      }
      const passing = need(name)();
      passing.use(throttle(made({ rate: '1/day' }), { handler: (/** @type {Any} */ _q, /** @type {Any} */ _s, /** @type {Any} */ next) => next() }));
      passing.get('/', (/** @type {Any} */ _request, /** @type {Any} */ response) => response.end('yes'));
      await using(passing, async (get) => {
        await get();
        const { status, headers, body } = await get();
        assert.deepEqual([status, body, headers['retry-after']], [200, 'yes', '86400']);
      });
    });
  });
}

describe('a middleware', () => {
  it('a middleware has counts, domain and resetKey()', () => {
    for (const middleware of [throttle('1/day', { table: false }), koaThrottle('1/day', { table: false }), honoThrottle('1/day', { table: false }), httpThrottle(() => {}, '1/day', { table: false })]) {
      assert.ok(middleware.domain.allow('t'));
      assert.ok(!middleware.domain.allow('t'));
      middleware.resetKey('t');
      assert.ok(middleware.domain.allow('t'));
      assert.equal(middleware.counts.passed, 0);
    }
  });

  it('resetKey() accepts an address in any spelling', () => {
    /** @type {[Any, string, string, string][]} */
    const cases = [
      [{}, '127.0.0.1', '127.0.0.1', '127.0.0.2'],
      [{}, '::ffff:127.0.0.1', '127.0.0.1', '127.0.0.2'],
      [{}, '203.0.113.7', ' [::ffff:cb00:7107]:80', '203.0.113.8'],
      [{}, '2001:db8:1:2:3::4', '2001:DB8:1:2::9', '2001:db8:1:3::4'],
      [{ ipv6Prefix: 48 }, '2001:db8:1:2:3::4', '2001:db8:1:3::', '2001:db8:2::'],
      [{ trustedProxies: ['127.0.0.0/8'] }, '127.0.0.1', '127.0.0.1', '127.0.0.2'],
      [{ tag: 'header:x-client' }, '127.0.0.1', '::ffff:127.0.0.1', '127.0.0.2'],
    ];
    for (const [options, peer, key, other] of cases) {
      const middleware = throttle('1/day', { table: false, ...options });
      assert.deepEqual([passes(middleware, peer), passes(middleware, peer)], [true, false], key);
      middleware.resetKey(other);
      assert.equal(passes(middleware, peer), false, `${other} is not ${peer}`);
      middleware.resetKey(key);
      assert.equal(passes(middleware, peer), true, key);
    }
  });

  it('resetKey() accepts other tags unchanged', () => {
    const byHeader = throttle('1/day', { table: false, tag: 'header:x-client' });
    const byNumber = throttle('1/day', { table: false, tag: () => 42 });
    for (const [middleware, key] of [[byHeader, '127.0.0.9'], [byNumber, 42], [byNumber, 42n], [byNumber, '42']]) {
      const pass = () => passes(middleware, '127.0.0.1', { 'x-client': '127.0.0.9' });
      pass();
      assert.equal(pass(), false);
      middleware.resetKey(key);
      assert.equal(pass(), true);
    }
  });

  it('requests of closed connections share a bucket that no client can choose', async () => {
    // Clients whose address or header has the bytes of "gone".
    for (const [options, headers] of [[{}, {}], [{ tag: 'header:x-client' }, {}], [{ tag: 'header:x-client' }, { 'x-client': 'gone' }]]) {
      const middleware = throttle('1/day', { table: false, ...options });
      const gone = () => passes(middleware, undefined, {}, { destroyed: true });
      assert.deepEqual([gone(), gone()], [true, false]);
      assert.equal(passes(middleware, '103.111.110.101', headers), true);
      assert.equal(middleware.counts.untagged, 0);
    }
  });

  it('an address whose bytes spell an allowed name is not exempt', () => {
    for (const name of ['root', 'networkaddress16']) {
      assert.throws(() => throttle('1/day', { table: false, allow: [name] }), { field: 'allow', message: RegExp(`"${name}"`) });
    }
    // A name in `allow` for header tags does not match an address, either.
    const headers = throttle('1/day', { table: false, ipv6Prefix: 128, tag: 'header:x-client', allow: ['root', 'networkaddress16'] });
    for (const peer of ['114.111.111.116', '6e65:7477:6f72:6b61:6464:7265:7373:3136']) {
      assert.deepEqual([passes(headers, peer), passes(headers, peer)], [true, false], peer);
    }
    const middleware = throttle('1/day', { table: false, allow: ['127.0.0.1', Buffer.from([127, 0, 0, 2])] });
    for (const peer of ['127.0.0.1', '127.0.0.2']) {
      assert.deepEqual([passes(middleware, peer), passes(middleware, peer)], [true, true], peer);
    }
    // If tags are names, `allow` matches them.
    for (const tag of ['header:x-client', () => 'root', () => Buffer.from('root')]) {
      const named = throttle('1/day', { table: false, allow: ['root'], tag });
      const pass = () => passes(named, '127.0.0.1', { 'x-client': 'root' });
      assert.deepEqual([pass(), pass()], [true, true]);
    }
  });

  it('in Koa the option handler responds to a refusal', async () => {
    const app = new (need('koa'))();
    const handler = (/** @type {Any} */ context) => {
      context.status = 418;
      context.body = 'tea';
    };
    app.use(koaThrottle(made({ rate: '1/day' }), { handler }));
    app.use((/** @type {Any} */ context) => (context.body = 'hello'));
    await using(app.callback(), async (get) => {
      await get();
      const { status, headers, body } = await get();
      assert.deepEqual([status, headers['retry-after'], body], [418, '86400', 'tea']);
    });
  });

  it('in Hono the middleware works without Node if a tag is given', async () => {
    const { Hono } = need('hono');
    const app = new Hono();
    const one = made({ rate: '2/day' });
    app.use(honoThrottle(one, { tag: 'header:X-Client', skipFailedRequests: true }));
    app.get('/', (/** @type {Any} */ context) => context.text('hello'));
    app.get('/bad', (/** @type {Any} */ context) => context.text('oops', 500));
    /** @param {string} path */
    const get = async (path) => (await app.request(path, { headers: { 'X-Client': 'a' } })).status;
    assert.deepEqual([await get('/bad'), await get('/bad'), await get('/'), await get('/'), await get('/')], [500, 500, 200, 200, 429]);
  });

  it('in Hono the option handler responds to a refusal', async () => {
    const { Hono } = need('hono');
    const policy = '"default";q=1;w=86400';
    /** @type {[Any, Any[]][]} */
    const ways = [
      [(/** @type {Any} */ context) => context.text('tea', 418), [418, '86400', policy, 'tea']],
      [async () => new Response('tea', { status: 418 }), [418, '86400', policy, 'tea']],
      [(/** @type {Any} */ context) => context.text('tea', 418, { 'Retry-After': '7' }), [418, '7', policy, 'tea']],
      [(/** @type {Any} */ _context, /** @type {Any} */ next) => next(), [200, '86400', policy, 'hello']],
      [() => assert.fail('broken'), [500, null, null, 'broken']],
    ];
    for (const [handler, expected] of ways) {
      const app = new Hono();
      app.onError((/** @type {Error} */ error, /** @type {Any} */ context) => context.text(error.message, 500));
      app.use(honoThrottle(made({ rate: '1/day' }), { tag: () => 't', handler }));
      app.get('/', (/** @type {Any} */ context) => context.text('hello'));
      assert.equal((await app.request('/')).status, 200);
      const { status, headers, ...response } = await app.request('/').then(async (/** @type {Response} */ got) => ({ status: got.status, headers: got.headers, body: await got.text() }));
      assert.deepEqual([status, headers.get('Retry-After'), headers.get('RateLimit-Policy'), response.body], expected);
    }
  });

  it('in Hono without Node a delay ends when the request is aborted', async () => {
    const { Hono } = need('hono');
    const one = made({ rate: '1/day' });
    const app = new Hono();
    const middleware = honoThrottle(one, { tag: () => 't', maxDelayMs: 3_600_000 });
    one.check('t');
    one.refund('t');
    one.chargeLocal('t', 0);
    const slow = new Throttle({ rate: '1/minute', clock: new ManualClock() });
    const delayed = honoThrottle(slow, { tag: () => 't', maxDelayMs: 3_600_000 });
    app.use(delayed);
    app.get('/', (/** @type {Any} */ context) => context.text('hello'));
    await app.request('/');
    const away = new AbortController();
    const waiting = app.request(new Request('http://x/', { signal: away.signal }));
    while (delayed.counts.delayed === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(slow.peek('t').balance, -1);
    away.abort();
    await waiting;
    assert.equal(slow.peek('t').balance, 0);
    assert.deepEqual([delayed.counts.delayed, delayed.counts.gaveUp, middleware.counts.delayed], [1, 1, 0]);
  });
});
