// Tests of the property rateLimit of requests, and that a problem with it fails no request.
'use strict';

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const { IncomingMessage, ServerResponse } = require('node:http');
const { Socket } = require('node:net');
const { describe, it } = require('node:test');

const { ManualClock, Throttle } = require('../index.js');
const { throttle: expressThrottle } = require('../web/express.js');
const { throttle: httpThrottle } = require('../web/http.js');
const { throttle: koaThrottle } = require('../web/koa.js');
const { kinds, start, using, warnings } = require('./shared/web.js');

/** @typedef {any} Any */
/** @param {string} name @returns {Any} */
const need = (name) => require(name);
/** @type {Any} */
const throttle = expressThrottle;

/** @param {string} rate */
const made = (rate) => new Throttle({ rate, clock: new ManualClock() });

/** A request of Express's kind, or of another, and its response, without a server. @param {Any} [kind] */
function exchange(kind) {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: '203.0.113.7' });
  /** @type {Any} */
  const request = new IncomingMessage(socket);
  const response = new ServerResponse(request);
  if (kind) Object.setPrototypeOf(request, kind);
  return { request, response };
}

/** Asks about a request, and gives what is found there. @param {Any} middleware @param {Any} [kind] */
function found(middleware, kind, name = 'rateLimit') {
  const { request, response } = exchange(kind);
  let passed = false;
  middleware(request, response, () => (passed = true));
  assert.ok(passed);
  return request[name];
}

for (const name of ['express', 'express4']) {
  describe(`the property of a request of ${name}`, () => {
    it('rateLimit is that of the last throttle', async () => {
      const app = need(name)();
      app.use(throttle(made('5/s'), { requestPropertyName: 'around' }));
      app.get('/', (/** @type {Any} */ request, /** @type {Any} */ response) => response.json(request.around.limit));
      const around = httpThrottle(app, made('9/s'), { requestPropertyName: 'around' });
      await using(around, async (get) => assert.deepEqual([(await get()).body, (await get()).body], ['5', '5']));
    });

    it('rateLimit replaces an existing property in every request', async () => {
      const app = need(name)();
      app.use((/** @type {Any} */ request, /** @type {Any} */ _, /** @type {Any} */ next) => {
        request.there = 'theirs';
        next();
      });
      app.use(throttle(made('5/s'), { requestPropertyName: 'there' }));
      app.get('/', (/** @type {Any} */ request, /** @type {Any} */ response) => response.json(request.there.limit ?? request.there));
      await using(app, async (get) => assert.deepEqual([(await get()).body, (await get()).body], ['5', '5']));
    });

    it('rateLimit may be overwritten by the application', () => {
      const { request, response } = exchange(need(name)().request);
      throttle(made('5/s'))(request, response, () => {});
      assert.equal(request.rateLimit, request.rateLimit);
      request.rateLimit = undefined;
      assert.equal(request.rateLimit, undefined);
      Object.defineProperty(request, 'rateLimit', { value: 'own', configurable: true, writable: true });
      throttle(made('6/s'))(request, response, () => {});
      assert.equal(request.rateLimit.limit, 6);
      delete request.rateLimit;
      throttle(made('7/s'))(request, response, () => {});
      assert.equal(request.rateLimit.limit, 7);
    });

    it('one middleware sets rateLimit in every kind of application', () => {
      const middleware = throttle(made('5/s'));
      const all = [need(name)().request, undefined, need(name)().request, undefined];
      assert.deepEqual(all.map((kind) => found(middleware, kind).remaining), [4, 3, 2, 1]);
    });
  });
}

describe('the property of a request', () => {
  it('rateLimit is an own property if the prototype cannot be changed', () => {
    const top = Object.freeze(Object.create(IncomingMessage.prototype));
    const kind = Object.create(top, { app: { value: () => {} } });
    const middleware = throttle(made('5/s'));
    assert.equal(found(middleware, kind).limit, 5);
    assert.equal(middleware.counts.failed, 0);
  });

  for (const kind of ['Express 5', 'Express 4', 'Fastify']) {
    it(`${kind}: a property that cannot be set fails no request`, async () => {
      for (const name of kind === 'Express 5' ? ['ip', 'path', 'query'] : ['ip', 'protocol']) {
        for (const tag of [() => 't', async () => 't']) {
          const emitted = await warnings(async () => {
            const web = await start(kind, made('3/day'), { requestPropertyName: name, tag });
            assert.deepEqual(await web.statuses(4), [200, 200, 200, 429]);
            assert.equal(web.counts.failed, 4);
            web.close();
          });
          assert.deepEqual(emitted.map(({ code }) => code), ['DTHROTTLE_FAILED']);
          assert.match(emitted[0].message, new RegExp(`^requestPropertyName failed: .*${name}`));
        }
      }
    });

    it(`${kind}: a property that cannot be set leaves no delayed request counted`, async () => {
      const one = new Throttle({ rate: '10/s', burst: 1, table: { private: true } });
      await warnings(async () => {
        const web = await start(kind, one, { requestPropertyName: 'ip', maxDelayMs: 1000, maxDelayed: 1 });
        assert.deepEqual(await web.statuses(4), [200, 200, 200, 200]);
        assert.ok(web.counts.delayed > 0);
        web.close();
      });
    });
  }

  it('requestPropertyName cannot replace a method of the request', async () => {
    for (const [kind, name] of [['Express 5', 'get'], ['Express 4', 'accepts'], ['Express 5', 'app']]) {
      const emitted = await warnings(async () => {
        const web = await start(kind, made('1/day'), { requestPropertyName: name });
        assert.deepEqual(await web.statuses(2), [200, 429]);
        assert.equal(web.counts.failed, 2);
        web.close();
      });
      assert.equal(emitted.length, 1);
      assert.match(emitted[0].message, new RegExp(`^requestPropertyName failed: ${name} is a method of requests; give another name`));
    }
  });

  it('a frozen state of Koa fails no request', async () => {
    const app = new (need('koa'))();
    const middleware = koaThrottle(made('5/s'));
    app.use((/** @type {Any} */ context, /** @type {Any} */ next) => {
      Object.freeze(context.state);
      return next();
    });
    app.use(middleware);
    app.use((/** @type {Any} */ context) => (context.body = 'hello'));
    await warnings(() => using(app.callback(), async (get) => assert.equal((await get()).body, 'hello')));
    assert.equal(middleware.counts.failed, 1);
  });
});

describe('delayed requests', () => {
  it('a failing delay leaves no delayed request counted', async () => {
    const one = new Throttle({ rate: '1/minute', clock: new ManualClock() });
    const options = { maxDelayMs: 3_600_000, maxDelayed: 1 };
    const web = await start('http', one, options);
    one.close();
    await warnings(async () => assert.deepEqual(await web.statuses(4), [200, 200, 200, 200]));
    assert.equal(web.counts.failed, 4);
    web.close();
    const next = await start('http', new Throttle({ rate: '10/s', burst: 1, table: { private: true } }), options);
    assert.deepEqual(await next.statuses(3), [200, 200, 200]);
    next.close();
  });

  it('requests are delayed also if the response is no event emitter', async () => {
    const one = new Throttle({ rate: '50/s', burst: 1, table: { private: true } });
    const middleware = throttle(one, { maxDelayMs: 1000, tag: () => 't' });
    const strange = () => ({ getHeader() {}, setHeader: () => assert.fail('broken') });
    await warnings(async () => {
      for (let i = 0; i < 3; i += 1) assert.equal(await middleware({}, strange(), () => 'passed'), 'passed');
    });
    // Two delayed requests fail to add listeners, and all three fail to set fields.
    assert.deepEqual([middleware.counts.delayed, middleware.counts.failed], [2, 5]);
  });
});

describe('RateLimitInfo', () => {
  it('RateLimitInfo has the own properties of express-rate-limit', (t) => {
    t.mock.method(Date, 'now', () => 1_700_000_000_000);
    const info = found(throttle(made('5/s')), need('express')().request);
    t.mock.restoreAll();
    const resetTime = new Date(1_700_000_000_200);
    const fields = { limit: 5, used: 1, remaining: 4, resetTime, key: '203.0.113.7' };
    assert.deepEqual({ ...info }, fields);
    assert.deepEqual(Object.keys(info), Object.keys(fields));
    assert.deepEqual(JSON.parse(JSON.stringify(info)), { ...fields, resetTime: resetTime.toJSON() });
    assert.equal(info.resetTime, info.resetTime);
    assert.deepEqual([info.decision.limit, info.decision.resetAfterMs], [5, 200]);
  });

  it('RateLimitInfo is the same in all frameworks', async () => {
    for (const kind of kinds) {
      const web = await start(kind, made('5/s'));
      await web.get();
      assert.deepEqual(Object.keys(web.seen[0]), ['limit', 'used', 'remaining', 'resetTime', 'key'], kind);
      web.close();
    }
  });

  it('RateLimitInfo is infinite in a domain without rules', () => {
    const { limit, used, remaining } = found(throttle(new Throttle('unlimited')));
    assert.deepEqual([limit, used, remaining], [Infinity, 0, Infinity]);
  });

  it('key and tag identify the client, and changing them changes nothing else', () => {
    const one = made('5/day');
    const middleware = throttle(one, { skipFailedRequests: true });
    const { request, response } = exchange(need('express')().request);
    middleware(request, response, () => {});
    const { tag } = request.rateLimit;
    assert.equal(one.peek(tag).remaining, 4);
    tag[3] = 99;
    response.writeHead(500);
    response.emit('close');
    assert.equal(one.peek(Uint8Array.of(203, 0, 113, 7)).remaining, 5);
    assert.equal(found(middleware).key, '203.0.113.7');
    for (const name of ['key', 'tag']) {
      middleware.resetKey(found(middleware)[name]);
      assert.equal(one.peek(Uint8Array.of(203, 0, 113, 7)).remaining, 5, name);
    }
  });

  it("key and tag of request.rateLimit are copies of the tag that the application gave", () => {
    const bytes = Uint8Array.of(1, 2, 3, 4);
    const { key, tag } = found(throttle(made('5/s'), { tag: () => bytes }));
    assert.deepEqual([key, tag], [bytes, bytes]);
    assert.ok(key !== bytes && tag !== bytes);
    assert.deepEqual(['user', 42].map((who) => found(throttle(made('5/s'), { tag: () => who })).key), ['user', '42']);
    // A header that looks like an address is not the tag of an address.
    const unsent = found(throttle(made('5/s'), { tag: 'header:X-Client' }));
    assert.deepEqual([unsent.key, Buffer.from(unsent.tag).toString('latin1')], ['203.0.113.7', 'address\xff\xcb\0q\x07']);
    const six = throttle(made('5/s'), { trustedProxies: ['203.0.113.7'] });
    const { request, response } = exchange();
    request.headers['x-forwarded-for'] = '2001:db8:1:2:3::4';
    six(request, response, () => {});
    assert.equal(request.rateLimit.key, '2001:db8:1:2::');
  });
});

describe('requests that are refunded', () => {
  it('requests with refunds pass if their connection is no event emitter', async () => {
    const middleware = throttle(made('5/s'), { skipFailedRequests: true, tag: () => 't' });
    const response = Object.assign(new EventEmitter(), { req: { socket: {} }, getHeader() {}, setHeader() {} });
    await warnings(() => assert.equal(middleware({}, response, () => 'passed'), 'passed'));
    assert.equal(middleware.counts.failed, 1);
  });

  it('a request whose client left before the decision is not refunded', async () => {
    const one = made('5/day');
    const { request, response } = exchange();
    const middleware = throttle(one, { skipFailedRequests: true, tag: async () => 't' });
    const passed = middleware(request, response, () => one.peek('t').remaining);
    response.destroy();
    assert.equal(await passed, 4);
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    assert.equal(one.peek('t').remaining, 4);
  });
});

describe('many throttles', () => {
  it('many throttles refund one response with one listener', async () => {
    const all = Array.from({ length: 12 }, () => made('5/day'));
    const { request, response } = exchange();
    const emitted = await allWarnings(() => {
      for (const one of all) throttle(one, { skipFailedRequests: true, validate: false })(request, response, () => {});
    });
    assert.deepEqual(emitted, []);
    const left = () => all.map((one) => one.peek(Uint8Array.of(203, 0, 113, 7)).remaining);
    assert.deepEqual(left(), Array(12).fill(4));
    response.writeHead(500);
    response.emit('close');
    assert.deepEqual(left(), Array(12).fill(5));
    assert.equal(EventEmitter.listenerCount(response, 'close'), 0);
  });
});

/** @param {() => void} run */
async function allWarnings(run) {
  /** @type {string[]} */
  const emitted = [];
  const onWarning = (/** @type {Error} */ { name }) => emitted.push(name);
  process.on('warning', onWarning);
  run();
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', onWarning);
  return emitted;
}
