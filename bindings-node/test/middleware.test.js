// Tests of the middleware in all frameworks, with real servers.
'use strict';

const assert = require('node:assert/strict');
const http2 = require('node:http2');
const { connect } = require('node:net');
const { describe, it } = require('node:test');

const { ManualClock, Throttle } = require('../index.js');
const { kinds, start, defaultRefusal, warnings } = require('./shared/web.js');

/** @typedef {any} Any */

/** A throttle with this burst, and one unit per minute. @param {number} [burst] */
function once(burst = 1) {
  const clock = new ManualClock();
  return Object.assign(new Throttle({ rate: '1/minute', burst, clock }), { clock });
}

/** The tag of 127.0.0.1. */
const HERE = Buffer.from([127, 0, 0, 1]);

/** Waits until something holds. @param {() => boolean} holds */
async function until(holds) {
  for (let i = 0; i < 2000 && !holds(); i += 1) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.ok(holds(), String(holds));
}

/**
 * Sends requests on one connection and closes it without waiting for the responses.
 * @param {number} port @param {number} count @param {() => boolean} when @param {string} [path]
 */
async function leave(port, count, when, path = '/') {
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(count));
  await until(when);
  socket.destroy();
}

for (const kind of kinds) {
  describe(kind, () => {
    /**
     * Runs a test with a server.
     * @param {Any[]} given
     * @param {(web: import('./shared/web.js').Web) => Promise<void>} run
     */
    async function using(given, run) {
      const web = await start(kind, ...given);
      try {
        await run(web);
      } finally {
        web.close();
      }
    }

    it('one line limits requests', async () => {
      const throttle = once(2);
      await using([throttle], async (web) => {
        const answers = [await web.get(), await web.get(), await web.get()];
        assert.deepEqual(answers.map(({ status }) => status), [200, 200, 429]);
        const [first, , last] = answers;
        assert.deepEqual([first.body, first.headers['x-app']], ['hello', '1']);
        assert.equal(first.headers.ratelimit, '"default";r=1;t=60');
        assert.equal(first.headers['ratelimit-policy'], '"default";q=2;w=120');
        assert.equal(first.headers['retry-after'], undefined);
        const { type, body } = defaultRefusal(kind);
        assert.equal(last.body, body);
        assert.equal(last.headers['retry-after'], '60');
        assert.equal(last.headers.ratelimit, '"default";r=0;t=60');
        assert.equal(last.headers['content-length'], String(body.length));
        assert.equal(last.headers['content-type'], type);
        assert.equal(last.headers['x-app'], undefined);
        throttle.clock.advance(60_000);
        assert.deepEqual(await web.statuses(2), [200, 429]);
        assert.deepEqual([web.counts.passed, web.counts.refused], [3, 2]);
        const [info] = web.seen;
        assert.deepEqual([info.limit, info.used, info.remaining, info.key], [2, 1, 1, '127.0.0.1']);
        assert.deepEqual([info.decision.remaining, Buffer.from(info.tag)], [1, HERE]);
        assert.ok(info.resetTime.getTime() > Date.now() + 50_000 && info.resetTime.getTime() <= Date.now() + 60_000);
      });
    });

    it('a refused HEAD request gets the fields without a body', async () => {
      await using([once()], async (web) => {
        await web.get();
        const { status, headers, body } = await web.get('/', { method: 'HEAD' });
        const length = String(defaultRefusal(kind).body.length);
        assert.deepEqual([status, body, headers['content-length'], headers['retry-after']], [429, '', length, '60']);
      });
    });

    it('clients are identified by a header or by their address', async () => {
      await using([once(), { tag: 'header:X-Client' }], async (web) => {
        assert.deepEqual(await web.statuses(2, { headers: { 'X-Client': 'a' } }), [200, 429]);
        assert.deepEqual(await web.statuses(2, { headers: { 'X-Client': 'b' } }), [200, 429]);
        assert.deepEqual(await web.statuses(2), [200, 429]);
        assert.deepEqual(await web.statuses(1, { headers: { 'X-Client': '127.0.0.1' } }), [200]);
      });
      await using([once()], async (web) => {
        assert.deepEqual(await web.statuses(2, { localAddress: '127.0.0.5' }), [200, 429]);
        assert.deepEqual(await web.statuses(1, { localAddress: '127.0.0.6' }), [200]);
        assert.deepEqual(await web.statuses(1, { localAddress: '127.0.0.5', headers: { 'X-Forwarded-For': '6.6.6.6' } }), [429]);
      });
    });

    it('X-Forwarded-For of trusted proxies identifies the client', async () => {
      await using([once(), { trustedProxies: ['127.0.0.1'] }], async (web) => {
        /** @param {string} text @param {string} [localAddress] */
        const from = async (text, localAddress) =>
          (await web.get('/', { localAddress, headers: { 'X-Forwarded-For': text } })).status;
        assert.equal(await from('203.0.113.1'), 200);
        assert.equal(await from('6.6.6.6, 203.0.113.1'), 429);
        assert.equal(await from('203.0.113.2'), 200);
        assert.equal(await from('203.0.113.3', '127.0.0.9'), 200);
        assert.equal(await from('203.0.113.4', '127.0.0.9'), 429, 'a peer that is not a trusted proxy must be the client');
      });
    });

    it('tag, cost and skip may be functions, also asynchronous ones', async () => {
      for (const wrap of [(/** @type {Any} */ x) => x, async (/** @type {Any} */ x) => x]) {
        const throttle = once(4);
        /** @type {Any[]} */
        const calls = [];
        const options = {
          tag: () => wrap('t'),
          cost: () => wrap(2),
          skip: () => wrap(false),
          onRefused: (/** @type {Any[]} */ ...given) => calls.push(given.at(-1)),
          body: () => wrap({ sorry: 'later' }),
        };
        await using([throttle, options], async (web) => {
          assert.deepEqual(await web.statuses(2), [200, 200]);
          const { status, headers, body } = await web.get();
          assert.deepEqual([status, body], [429, '{"sorry":"later"}']);
          assert.match(headers['content-type'], /^application\/json/);
          assert.deepEqual([calls.length, calls[0].rule, throttle.peek('t').remaining], [1, 'rule1', 0]);
        });
      }
      await using([once(), { skip: async () => true }], async (web) => {
        assert.deepEqual(await web.statuses(3), [200, 200, 200]);
        assert.equal(web.counts.passed, 0);
      });
    });

    it('a failing function fails no request and is reported once', async () => {
      const fail = () => {
        throw new Error('oops');
      };
      for (const bad of [fail, async () => fail()]) {
        const emitted = await warnings(async () => {
          await using([once(), { tag: bad }], async (web) => {
            assert.deepEqual(await web.statuses(3), [200, 429, 429]);
            assert.deepEqual([web.counts.failed, web.counts.untagged], [3, 3]);
          });
          await using([once(), { cost: bad, body: bad, onRefused: bad, skip: bad }], async (web) => {
            assert.deepEqual(await web.statuses(3), [200, 429, 429]);
            assert.equal(web.counts.failed, 10);
          });
        });
        const codes = emitted.map(({ code, message }) => `${code} ${message.split(' ')[0]}`).sort();
        assert.deepEqual(codes, [
          'DTHROTTLE_FAILED body', 'DTHROTTLE_FAILED cost', 'DTHROTTLE_FAILED onRefused',
          'DTHROTTLE_FAILED skip', 'DTHROTTLE_FAILED tag',
        ]);
      }
      const throttle = once();
      await warnings(() => using([throttle], async (web) => {
        throttle.close();
        assert.deepEqual(await web.statuses(2), [200, 200]);
        assert.equal(web.counts.failed, 2);
      }));
    });

    it('a cost above the burst passes with a full bucket and leaves it in debt', async () => {
      const throttle = once(2);
      await using([throttle, { cost: () => 5 }], async (web) => {
        assert.deepEqual(await web.statuses(2), [200, 429]);
        assert.equal(throttle.peek(HERE).balance, -3);
      });
      const other = once(2);
      await using([other, { cost: () => 5, skipFailedRequests: true }], async (web) => {
        assert.equal((await web.get('/?status=500')).status, 500);
        await until(() => other.peek(HERE).balance === 2);
      });
    });

    it('an invalid cost counts as 1', async () => {
      const costs = [Infinity, 2 ** 53, 1.5, -1, NaN, '2', undefined];
      const throttle = once(costs.length);
      let callCount = 0;
      await warnings(() => using([throttle, { cost: () => costs[(callCount += 1) - 1] }], async (web) => {
        assert.deepEqual(await web.statuses(costs.length), costs.map(() => 200));
        assert.deepEqual([web.counts.failed, throttle.peek(HERE).remaining], [costs.length, 0]);
      }));
    });

    it('status and body of a refusal follow the options', async () => {
      await using([once(), { status: 503, body: 'problem+json', headers: 'draft-6', legacyHeaders: true }], async (web) => {
        const first = await web.get();
        assert.equal(first.headers['ratelimit-remaining'], '0');
        assert.equal(first.headers['x-ratelimit-remaining'], '0');
        const { status, headers, body } = await web.get();
        assert.deepEqual([status, headers['content-type'].split(';')[0]], [503, 'application/problem+json']);
        assert.deepEqual(JSON.parse(body)['violated-policies'], ['default']);
      });
      await using([once(), { headers: false, body: Buffer.from([1, 2]) }], async (web) => {
        assert.equal((await web.get()).headers.ratelimit, undefined);
        const { headers, body } = await web.get();
        assert.deepEqual([body, headers['content-length'], headers['retry-after']], ['\u0001\u0002', '2', '60']);
      });
    });

    it('no request is refused in dry run', async () => {
      let calls = 0;
      await using([once(), { dryRun: true, maxDelayMs: 1000, onRefused: () => (calls += 1) }], async (web) => {
        assert.deepEqual(await web.statuses(3), [200, 200, 200]);
        assert.deepEqual([web.counts.passed, web.counts.dryRun, web.counts.refused, calls], [1, 2, 0, 2]);
      });
      const throttle = new Throttle({ rate: '1/minute', dryRun: true });
      await using([throttle, { maxDelayMs: 60_000 }], async (web) => {
        assert.deepEqual(await web.statuses(3), [200, 200, 200]);
        assert.deepEqual([web.counts.passed, web.counts.dryRun, web.counts.delayed], [1, 2, 0]);
      });
    });

    it('methods, routes, allow and skip select the limited requests', async () => {
      await using([once(), { methods: ['POST'], routes: ['/api/.*', /^\/l.gin$/g] }], async (web) => {
        /** @param {string} path @param {string} method */
        const twice = async (path, method) => [(await web.get(path, { method })).status, (await web.get(path, { method })).status];
        assert.deepEqual(await twice('/api/x', 'GET'), [200, 200]);
        assert.deepEqual(await twice('/', 'POST'), [200, 200]);
        assert.deepEqual(await twice('/login?x=1', 'POST'), [200, 429]);
        assert.deepEqual(await twice('/api/x', 'POST'), [429, 429]);
        assert.deepEqual(await twice('/x/api/x', 'POST'), [200, 200]);
      });
      await using([once(), { tag: 'header:X-Client', allow: ['127.0.0.8/30', 'alice'] }], async (web) => {
        assert.deepEqual(await web.statuses(2, { localAddress: '127.0.0.9' }), [200, 200]);
        assert.deepEqual(await web.statuses(2, { headers: { 'X-Client': 'alice' } }), [200, 200]);
        assert.deepEqual(await web.statuses(2, { headers: { 'X-Client': 'bob' } }), [200, 429]);
        // A header that is sent twice is ignored. Otherwise a client could choose its bucket.
        assert.deepEqual(await web.statuses(2, { headers: { 'X-Client': ['bob', 'x'] } }), [200, 429]);
        assert.deepEqual(await web.statuses(1, { headers: { 'X-Client': ['bob', 'y'] } }), [429]);
      });
      await using([once(), { methods: ['GET'], routes: ['/.*'] }], async (web) => {
        assert.equal((await web.get('/', { method: 'POST' })).status, 200);
        assert.equal((await web.get('/a%0A', { method: 'HEAD' })).status, 200);
        assert.equal((await web.get('/', { method: 'HEAD' })).status, 429);
      });
    });

    it('routes match all spellings of a path that reach the handler', async () => {
      const lax = kind === 'Hono' ? [] : ['/login/', '/x/../login', '/login;a'];
      const lower = ['Hono', 'http'].includes(kind) ? [] : ['/LOGIN'];
      await using([once(), { routes: ['/login', '/f/[^/]+'] }], async (web) => {
        assert.equal((await web.get('/login')).status, 200);
        for (const path of ['/login?a', '/lo%67in', 'http://x/login', 'http://x/login?a', '/login#a', '/f/a%2Fb', ...lax, ...lower]) {
          const { status } = await web.get(path);
          assert.ok(status === 429 || (kind === 'Hono' && path.startsWith('/f/')), `${path}: ${status}`);
        }
        for (const path of ['/', '/logins', '/x/login', '/?/login']) assert.equal((await web.get(path)).status, 200, path);
      });
    });

    it('a request whose connection is already closed is counted', async () => {
      let callCount = 0;
      const skip = async (/** @type {Any} */ request) => {
        callCount += 1;
        const { socket } = request.raw ?? request.env?.incoming ?? (request.req?.socket ? request.req : request);
        await until(() => socket.destroyed);
        return false;
      };
      await using([once(), { skip }], async (web) => {
        for (let i = 0; i < 4; i += 1) await leave(web.port, 1, () => callCount > i);
        await until(() => web.counts.refused === 3);
        assert.deepEqual([web.counts.passed, web.counts.untagged], [1, 0]);
      });
    });

    it('all delayed requests of a connection end when it closes', async () => {
      const throttle = new Throttle({ rate: '1/s', table: { private: true } });
      await using([throttle, { maxDelayMs: 60_000, skipFailedRequests: true }], async (web) => {
        await leave(web.port, 12, () => web.counts.delayed === 11);
        await until(() => web.counts.gaveUp === 11);
        assert.equal(web.seen.length, 1);
      });
    });

    it('skipFailedRequests and skipSuccessfulRequests refund requests by their status', async () => {
      const throttle = once(10);
      const left = () => throttle.peek(HERE).remaining;
      await using([throttle, { skipFailedRequests: true, cost: 2 }], async (web) => {
        await web.get('/?status=404');
        await until(() => left() === 10);
        await web.get('/');
        await until(() => left() === 8);
        await web.get('/?status=500');
        await until(() => left() === 8);
      });
      const other = once(10);
      await using([other, { skipSuccessfulRequests: true }], async (web) => {
        await web.get('/');
        await until(() => other.peek(HERE).remaining === 10);
        await web.get('/?status=404');
        await until(() => other.peek(HERE).remaining === 9);
      });
      const third = once(10);
      let callCount = 0;
      const requestWasSuccessful = () => (callCount += 1) > 1;
      await using([third, { skipSuccessfulRequests: true, requestWasSuccessful }], async (web) => {
        await web.get('/');
        await web.get('/');
        await until(() => callCount === 2);
        assert.equal(third.peek(HERE).remaining, 9);
      });
    });

    it('a request whose client leaves before the response stays counted', async () => {
      for (const option of ['skipFailedRequests', 'skipSuccessfulRequests']) {
        const throttle = once(2);
        await using([throttle, { [option]: true }], async (web) => {
          for (let i = 1; i <= 4; i += 1) {
            await leave(web.port, 1, () => web.counts.passed + web.counts.refused === i, '/?wait');
            // Waits until the server has noticed that the client left.
            await until(() => web.left() === Math.min(i, 2));
          }
          assert.deepEqual([web.counts.passed, web.counts.refused, web.seen.length], [2, 2, 2]);
          assert.equal(throttle.peek(HERE).remaining, 0);
        });
      }
    });

    it('requests are delayed until their turn', async () => {
      const throttle = new Throttle({ rate: '20/s', burst: 1, table: { private: true } });
      await using([throttle, { maxDelayMs: 160 }], async (web) => {
        await web.get('/', { localAddress: '127.0.0.2' }); // nothing is slow because it is new
        const begin = performance.now();
        const times = await Promise.all(Array.from({ length: 8 }, async () => {
          const { status } = await web.get();
          return { status, ms: performance.now() - begin };
        }));
        const passed = times.filter(({ status }) => status === 200).map(({ ms }) => ms).sort((a, b) => a - b);
        assert.equal(times.filter(({ status }) => status === 429).length, 8 - passed.length);
        assert.ok(passed.length >= 4, `${passed.length}`);
        passed.forEach((ms, i) => assert.ok(ms > 50 * i - 5, `${ms} ms is before turn ${i}`));
        // On a slow machine some requests pass before all others have arrived.
        assert.ok(web.counts.delayed > 0 && web.counts.delayed < passed.length);
      });
    });

    it('requests above maxDelayed are refused', async () => {
      const throttle = once();
      await using([throttle, { maxDelayMs: 60_000, maxDelayed: 1 }], async (web) => {
        assert.equal((await web.get()).status, 200);
        const away = new AbortController();
        const gone = assert.rejects(web.get('/', { signal: away.signal }), { name: 'AbortError' });
        await until(() => web.counts.delayed === 1);
        assert.equal((await web.get()).status, 429);
        assert.equal((await web.get('/', { localAddress: '127.0.0.7' })).status, 200);
        away.abort();
        await gone;
        await until(() => web.counts.gaveUp === 1);
        // A request that passes is no longer delayed.
        for (const delayed of [2, 3]) {
          throttle.clock.advance(delayed === 2 ? 59_980 : 60_000);
          assert.equal((await web.get()).status, 200);
          assert.equal(web.counts.delayed, delayed);
        }
      });
    });

    it('a delayed request is refunded when its client leaves', async () => {
      const throttle = once();
      await using([throttle, { maxDelayMs: 3_600_000, maxDelayed: 1 }], async (web) => {
        await web.get();
        for (let i = 1; i <= 3; i += 1) {
          const away = new AbortController();
          const gone = assert.rejects(web.get('/', { signal: away.signal }), { name: 'AbortError' });
          await until(() => web.counts.delayed === i);
          assert.equal(throttle.peek(HERE).balance, -1);
          away.abort();
          await gone;
          await until(() => web.counts.gaveUp === i);
          assert.equal(throttle.peek(HERE).balance, 0);
        }
        assert.equal(web.seen.length, 1);
      });
    });

    it('a request is refunded if its client left before the delay', async () => {
      const throttle = once();
      let callCount = 0;
      const tag = async (/** @type {Any} */ request) => {
        callCount += 1;
        const { socket } = request.raw ?? request.env?.incoming ?? (request.req?.socket ? request.req : request);
        if (callCount > 1) await until(() => socket.destroyed);
        return 't';
      };
      await using([throttle, { maxDelayMs: 3_600_000, tag }], async (web) => {
        await web.get();
        await leave(web.port, 1, () => callCount === 2);
        await until(() => web.counts.gaveUp === 1);
        assert.deepEqual([web.counts.delayed, throttle.peek('t').balance, web.seen.length], [1, 0, 1]);
      });
    });

    it('a refusal is sent at once if maxDelayed is reached', async () => {
      await using([once(), { throttleMilliseconds: 600_000, maxDelayed: 0 }], async (web) => {
        await web.get();
        assert.equal((await web.get('/', { signal: AbortSignal.timeout(10_000) })).status, 429);
      });
    });

    it('throttleMilliseconds delays refusals', async () => {
      await using([once(), { throttleMilliseconds: 120 }], async (web) => {
        await web.get();
        const begin = performance.now();
        assert.equal((await web.get()).status, 429);
        assert.ok(performance.now() - begin > 100);
      });
    });
  });
}

describe('HTTP/2', () => {
  it('HTTP/2 requests are limited, delayed and refunded', async () => {
    const { throttle } = require('../web/http.js');
    const budget = once(1);
    const options = /** @type {Any} */ ({ tag: 'header:X-Client', skipFailedRequests: true });
    const handler = throttle((/** @type {Any} */ request, /** @type {Any} */ response) => {
      response.statusCode = request.url === '/bad' ? 500 : 200;
      response.end();
    }, budget, options);
    const server = http2.createServer(/** @type {Any} */ (handler)).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    const session = http2.connect(`http://127.0.0.1:${port}`);
    const get = (/** @type {string} */ path, /** @type {string | string[]} */ client) =>
      new Promise((resolve) => session.request({ ':path': path, 'x-client': client }).once('response', (head) => resolve(head[':status'])).resume());
    try {
      assert.equal(await get('/bad', 'bob'), 500);
      await until(() => budget.peek('bob').remaining === 1);
      assert.deepEqual([await get('/', 'bob'), await get('/', 'bob'), await get('/', 'alice')], [200, 429, 200]);
      // A header that is sent twice is ignored.
      assert.deepEqual([await get('/', ['bob', 'x']), await get('/', ['bob', 'y'])], [200, 429]);
    } finally {
      session.close();
      server.close();
    }
  });
});
