// Tests of refusals after a response has begun.
'use strict';

const assert = require('node:assert/strict');
const http2 = require('node:http2');
const { once } = require('node:events');
const { describe, it } = require('node:test');
const { setTimeout: later } = require('node:timers/promises');

const { ManualClock, Throttle } = require('../index.js');
const { throttle: expressThrottle } = require('../web/express.js');
const { throttle: httpThrottle } = require('../web/http.js');
const { using } = require('./shared/web.js');

/** @typedef {any} Any */
/** @param {string} name @returns {Any} */
const need = (name) => require(name);

const DAY = () => new Throttle({ rate: '1/day', clock: new ManualClock() });

/** The longest time for a request in these tests. */
const soon = () => ({ signal: AbortSignal.timeout(5000) });

/**
 * An application with a handler before the throttle and one after it.
 * @param {string} name
 * @param {(request: Any, response: Any, next: () => void) => void} before
 * @param {Any} [options]
 */
function made(name, before, options) {
  /** @type {Any} */
  const throttle = expressThrottle;
  const middleware = throttle(DAY(), options);
  const app = need(name)();
  app.use(before).use(middleware).use((/** @type {Any} */ _request, /** @type {Any} */ response) => {
    if (!response.writableEnded) response.end('hello');
  });
  return { app, counts: middleware.counts };
}

for (const name of ['express', 'express4', 'connect']) {
  describe(`${name}: a response that has begun`, () => {
    it('a response that began before the refusal is closed', async () => {
      for (const tag of [() => 't', async () => 't']) {
        for (const head of [{}, { 'Content-Length': '5' }]) {
          const { app, counts } = made(name, (_request, response, next) => {
            response.writeHead(200, head).flushHeaders();
            next();
          }, { tag });
          await using(app, async (get) => {
            assert.equal((await get('/', soon())).body, 'hello');
            await assert.rejects(get('/', soon()), { code: 'ECONNRESET' });
          });
          assert.deepEqual([counts.passed, counts.refused, counts.failed], [1, 1, 0]);
        }
      }
    });

    it('the option handler ends a response that has begun', async () => {
      const handler = (/** @type {Any} */ _request, /** @type {Any} */ response) => response.end('sorry');
      const { app, counts } = made(name, (_request, response, next) => {
        response.writeHead(200).flushHeaders();
        next();
      }, { handler });
      await using(app, async (get) => assert.deepEqual([(await get('/', soon())).body, (await get('/', soon())).body], ['hello', 'sorry']));
      assert.equal(counts.failed, 0);
    });

    it('a response that has ended is not changed', async () => {
      const { app } = made(name, (_request, response, next) => {
        response.end('mine '.repeat(2_000_000));
        next();
      });
      await using(app, async (get) => {
        for (let i = 0; i < 2; i += 1) assert.equal((await get('/', soon())).body.length, 10_000_000);
      });
    });

    it('a response that began during an asynchronous call is not changed', async () => {
      let began = Promise.resolve();
      const { app, counts } = made(name, (request, response, next) => {
        if (request.url === '/slow') {
          began = later(5).then(() => response.write('mine '));
          began.then(() => later(50)).then(() => response.end('still'));
        }
        next();
      }, { body: () => began.then(() => 'sorry') });
      await using(app, async (get) => {
        await get('/', soon());
        const { status, body } = await get('/slow', soon());
        assert.deepEqual([status, body], [200, 'mine still']);
      });
      assert.deepEqual([counts.refused, counts.failed], [1, 0]);
    });
  });
}

describe('HTTP/2: a response that has begun', () => {
  it('a response that began before the refusal is closed', async () => {
    const handler = httpThrottle((/** @type {Any} */ _request, /** @type {Any} */ response) => response.end('hello'), DAY(), { tag: () => 't' });
    const server = http2.createServer((request, response) => {
      response.writeHead(200);
      handler(/** @type {Any} */ (request), /** @type {Any} */ (response));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const session = http2.connect(`http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`);
    try {
      for (const expected of ['hello', '']) {
        const stream = session.request({ ':path': '/' });
        let body = '';
        stream.setEncoding('utf8').on('data', (part) => (body += part)).on('error', () => {});
        await once(stream, 'close', soon());
        assert.equal(body, expected);
      }
      assert.deepEqual([handler.counts.refused, handler.counts.failed], [1, 0]);
    } finally {
      session.close();
      server.close();
    }
  });
});
