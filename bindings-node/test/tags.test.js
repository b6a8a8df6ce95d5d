// Tests of usable and unusable tags. No client can avoid its limit by the type of a value.
'use strict';

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const http = require('node:http');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { describe, it } = require('node:test');

const { ManualClock, Throttle } = require('../index.js');
const { toTag } = require('../web/tags.js');
const { ask, kinds, start, using, warnings } = require('./shared/web.js');

/** @typedef {any} Any */

const vectors = JSON.parse(readFileSync(join(__dirname, '../../tests/vectors/tags.json'), 'utf8'));

/** The address of another client. */
const OTHER = '127.0.0.2';

/** A throttle with a burst of one, and one unit per minute. */
function once() {
  const clock = new ManualClock();
  return Object.assign(new Throttle({ rate: '1/minute', clock }), { clock });
}

/** The URL of a request of any framework. @param {Any} request @returns {string} */
const urlOf = (request) => request.originalUrl ?? request.raw?.url ?? request.req?.url ?? request.url;

/** The query, as JSON. @param {Any} request */
const valueOf = (request) => JSON.parse(String(new URL(urlOf(request), 'http://x').searchParams.get('value')));

/** Values that no client can send, but functions may return. @type {[string, Any][]} */
const OTHERS = [
  ['undefined', undefined],
  ['NaN', NaN],
  ['a number that is not exact', 2 ** 53],
  ['a symbol', Symbol('x')],
  ['a function', () => 'x'],
  ['an object of text', Object('x')],
  ['a date', new Date(0)],
  ['other bytes', new Uint16Array(2)],
  ['no bytes', new Uint8Array()],
];

describe('values of tags', () => {
  it('text, bytes and whole numbers are tags', () => {
    for (const { json, tag } of vectors.usable) assert.equal(toTag(JSON.parse(json)), tag, json);
    assert.deepEqual([toTag(7n), toTag(2n ** 70n), toTag(-0)], ['7', String(2n ** 70n), '0']);
    const bytes = Buffer.from('x');
    assert.equal(toTag(bytes), bytes);
  });

  it('other values are no tags', () => {
    for (const { json, why } of vectors.unusable) assert.equal(toTag(JSON.parse(json)), null, `${json}: ${why}`);
    for (const [name, value] of OTHERS) assert.equal(toTag(value), null, name);
  });
});

for (const kind of kinds) {
  describe(`tags of ${kind}`, () => {
    /**
     * Runs a test with a server.
     * @param {Any} throttle
     * @param {Any} options
     * @param {(web: import('./shared/web.js').Web) => Promise<void>} run
     */
    async function serving(throttle, options, run) {
      const web = await start(kind, throttle, options);
      try {
        await run(web);
      } finally {
        web.close();
      }
    }

    it('tags are the values that clients send, or their addresses if unusable', async () => {
      for (const wrap of [(/** @type {Any} */ value) => value, async (/** @type {Any} */ value) => value]) {
        const throttle = once();
        const emitted = await warnings(() => serving(throttle, { tag: (/** @type {Any} */ r) => wrap(valueOf(r)) }, async (web) => {
          /** @param {string} json @param {string} [localAddress] */
          const status = async (json, localAddress) =>
            (await web.get(`/?value=${encodeURIComponent(json)}`, { localAddress })).status;
          for (const { json } of vectors.usable) {
            assert.deepEqual([await status(json), await status(json, OTHER)], [200, 429], json);
          }
          assert.equal(web.counts.untagged, 0);
          for (const { json } of vectors.unusable) {
            throttle.clock.advance(60_000);
            assert.deepEqual([await status(json), await status(json), await status(json, OTHER)], [200, 429, 200], json);
          }
          assert.deepEqual([web.counts.failed, web.counts.untagged], [0, 3 * vectors.unusable.length]);
          const { key, tag } = web.seen.at(-1);
          assert.deepEqual([key, Buffer.from(tag).toString('latin1')], [OTHER, 'address\xff\x7f\0\0\x02']);
          web.tools.resetKey(OTHER);
          assert.deepEqual([await status('null', OTHER), await status('null')], [200, 429]);
        }));
        assert.deepEqual(emitted.map(({ code }) => code), ['DTHROTTLE_NO_TAG']);
        assert.match(emitted[0].message, /^tag must return text .* got null; the client is counted by its address/);
      }
    });

    it('the address is the tag if a function returns an unusable value', async () => {
      for (const [name, value] of OTHERS) {
        await warnings(() => serving(once(), { tag: () => value }, async (web) => {
          assert.deepEqual(await web.statuses(2), [200, 429], name);
          assert.deepEqual(await web.statuses(1, { localAddress: OTHER }), [200], name);
        }));
      }
    });

    it('unusable tags are limited, except for requests that allow and skip exempt', async () => {
      const options = { tag: valueOf, allow: ['alice'], skip: (/** @type {Any} */ r) => urlOf(r).includes('health') };
      await warnings(() => serving(once(), options, async (web) => {
        /** @param {string} json @param {string} [more] */
        const status = async (json, more = '') => (await web.get(`/?value=${encodeURIComponent(json)}${more}`)).status;
        for (let i = 0; i < 3; i += 1) assert.deepEqual([await status('"alice"'), await status('[]', '&health')], [200, 200]);
        assert.deepEqual([await status('["alice"]'), await status('["alice"]')], [200, 429]);
      }));
    });
  });
}

/** Typical applications. */
describe('a limit for a value that a client sends', () => {
  /** @param {string} name */
  const need = (name) => require(name);
  /** Sends four requests. @param {() => Promise<{ status: number }>} send */
  async function fourTimes(send) {
    const statuses = [];
    while (statuses.length < 4) statuses.push((await send()).status);
    return statuses;
  }
  const form = { method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded' } };

  for (const name of ['express', 'express4']) {
    it(`the limit holds in ${name} with email[]= in a form`, async () => {
      const express = need(name);
      const { throttle } = require('../web/express.js');
      const app = express();
      app.use(express.urlencoded({ extended: true }));
      app.use(throttle('2 per 9 years', { table: false, tag: (/** @type {Any} */ q) => q.body.email }));
      app.use((/** @type {Any} */ _request, /** @type {Any} */ response) => response.end('hello'));
      await warnings(() => using(app, async (get) => {
        for (const body of ['email=a@x', 'email[]=a@x', 'email[]=b@x', 'email[a]=a@x', 'name=x', 'email=']) {
          const statuses = await fourTimes(() => get('/', /** @type {Any} */ ({ ...form, body })));
          assert.deepEqual(statuses, body === 'email=a@x' || body === 'email[]=a@x' ? [200, 200, 429, 429] : [429, 429, 429, 429], body);
        }
      }));
    });
  }

  it('the limit holds in Fastify and Koa with a parameter that is given twice', async () => {
    const app = need('fastify')();
    await app.register(require('../web/fastify.js').throttle, { rate: '2 per 9 years', table: false, tag: (/** @type {Any} */ q) => q.query.user });
    app.get('/', async () => 'hello');
    await app.ready();
    const koa = new (need('koa'))();
    koa.use(require('../web/koa.js').throttle('2 per 9 years', { table: false, tag: (/** @type {Any} */ c) => c.query.user }));
    koa.use((/** @type {Any} */ context) => {
      context.body = 'hello';
    });
    for (const handler of [app.routing, koa.callback()]) {
      await warnings(() => using(handler, async (get) => {
        for (const query of ['user=x', 'user=x&user=x']) {
          assert.deepEqual(await fourTimes(() => get(`/?${query}`)), [200, 200, 429, 429], query);
        }
      }));
    }
    await app.close();
  });

  it('the limit holds on a Unix socket, where no address is known', async () => {
    const { throttle } = require('../web/http.js');
    for (const tag of ['header:X-Client', (/** @type {Any} */ request) => request.headers['x-client']]) {
      const path = join(tmpdir(), `dthrottle-tags-${process.pid}.sock`);
      const throttled = throttle((_request, response) => response.end('hello'), '2 per 9 years', /** @type {Any} */ ({ table: false, tag }));
      const server = http.createServer(throttled);
      await new Promise((resolve) => server.listen(path, () => resolve(undefined)));
      try {
        const emitted = await warnings(async () => {
          assert.deepEqual(await fourTimes(() => ask(0, '/', { socketPath: path })), [200, 200, 429, 429]);
          assert.equal((await ask(0, '/', { socketPath: path, headers: { 'X-Client': 'a' } })).status, 200);
        });
        assert.ok(emitted.some(({ message }) => message.includes('share one bucket')));
      } finally {
        server.closeAllConnections();
        server.close();
      }
    }
  });
});
