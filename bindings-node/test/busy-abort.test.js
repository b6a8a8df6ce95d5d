// Tests that requests that are aborted while they wait fail at once, take no turn and leave the queue, for every way to
// abort.
'use strict';

const assert = require('node:assert/strict');
const { EventEmitter, once } = require('node:events');
const { createServer } = require('node:http');
const { after, before, beforeEach, describe, it } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const axios = require('axios');
const undici = require('undici');

const { BusyThrottle } = require('../index.js');
const { busyAxios, busyFetch, busyInterceptor } = require('../busy/index.js');

const PAUSE_MS = 3000;
const AFTER_MS = 50;

let seen = 0;
const server = createServer((request, response) => {
  seen += 1;
  if (request.url === '/moved') response.writeHead(302, { Location: '/' });
  response.end('x');
});
let host = '';
let url = '';
let throttle = new BusyThrottle();

before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  host = `127.0.0.1:${/** @type {any} */ (server.address()).port}`;
  url = `http://${host}/`;
});
beforeEach(() => {
  seen = 0;
  throttle = new BusyThrottle({ floor: 100 });
});
after(() => {
  server.closeAllConnections();
  server.close();
});

/** @param {any[]} others Other interceptors. */
function dispatcher(...others) {
  return new undici.Agent().compose(busyInterceptor({ throttle, maxDelayMs: 10_000 }), ...others);
}

/** Aborts after a short time. */
function soon() {
  const emitter = new EventEmitter();
  const source = axios.CancelToken.source();
  setTimeout(() => {
    emitter.emit('abort');
    source.cancel('enough');
  }, AFTER_MS);
  return { emitter, token: source.token, signal: AbortSignal.timeout(AFTER_MS) };
}

const fetching = () => busyFetch({ throttle, maxDelayMs: 10_000 });
const instance = () => busyAxios(axios.create(), { throttle, maxDelayMs: 10_000 });

/** @type {Record<string, [() => Promise<unknown>, any]>} The call, and what it fails with. */
const ways = {
  'fetch, by a signal': [() => fetching()(url, { signal: soon().signal }), { name: 'TimeoutError' }],
  "fetch, by the request's signal": [
    () => fetching()(new Request(url, { signal: soon().signal })),
    { name: 'TimeoutError' },
  ],
  'undici.request, by a signal': [
    () => undici.request(url, { dispatcher: dispatcher(), signal: soon().signal }),
    { name: 'TimeoutError' },
  ],
  'undici.request, by an emitter': [
    () => undici.request(url, { dispatcher: dispatcher(), signal: soon().emitter }),
    { code: 'UND_ERR_ABORTED' },
  ],
  'undici.stream, by an emitter': [
    () =>
      undici.stream(url, { dispatcher: dispatcher(), method: 'GET', signal: soon().emitter }, () =>
        assert.fail('it was answered'),
      ),
    { name: 'AbortError' },
  ],
  'undici.fetch, by a signal': [
    () => undici.fetch(url, { dispatcher: dispatcher(), signal: soon().signal }),
    { name: 'TimeoutError' },
  ],
  'undici.fetch, below other interceptors': [
    () => {
      const { retry, redirect } = undici.interceptors;
      const composed = dispatcher(retry(), redirect({ maxRedirections: 3 }));
      return undici.fetch(url, { dispatcher: composed, signal: soon().signal });
    },
    { name: 'TimeoutError' },
  ],
  "the platform's fetch with a dispatcher": [
    () => fetch(url, /** @type {any} */ ({ dispatcher: dispatcher(), signal: soon().signal })),
    { name: 'TimeoutError' },
  ],
  'axios, by a signal': [() => instance().get(url, { signal: soon().signal }), axios.isCancel],
  'axios, by a token': [
    () => instance().get(url, { cancelToken: soon().token }),
    { message: 'enough', code: 'ERR_CANCELED' },
  ],
};

it('aborted requests fail at once and take no turn', async () => {
  throttle.onBusy(host, PAUSE_MS);
  const begun = performance.now();
  await Promise.all(Object.entries(ways).map(async ([name, [call, error]]) => {
    await assert.rejects(call(), error, name);
    const took = performance.now() - begun;
    assert(took < PAUSE_MS, `${name}: ${took} ms`);
  }));
  // After this time the first request would have had its turn.
  await sleep(PAUSE_MS + 500 - (performance.now() - begun));
  assert.deepEqual([seen, throttle.stats().sent], [0, 0]);
});

describe('a request that was aborted before it was sent', () => {
  it('a request that was aborted before it is sent takes no turn', async () => {
    const cancelled = axios.CancelToken.source();
    cancelled.cancel('no');
    const signal = AbortSignal.abort();
    await assert.rejects(instance().get(url, { cancelToken: cancelled.token }), axios.isCancel);
    await assert.rejects(fetching()(url, { signal }), { name: 'AbortError' });
    await assert.rejects(undici.request(url, { dispatcher: dispatcher(), signal }), { name: 'AbortError' });
    assert.deepEqual([seen, throttle.stats().sent], [0, 0]);
  });
});

describe('a request that waited', () => {
  it('a request that waited gets its response and leaves no listener', async () => {
    const { token } = axios.CancelToken.source();
    const emitter = new EventEmitter();
    throttle.onBusy(host, 100);
    await instance().get(url, { cancelToken: token });
    assert.deepEqual(/** @type {any} */ (token)._listeners ?? [], []);
    throttle.onBusy(host, 100);
    const { body } = await undici.request(url, { dispatcher: dispatcher(), signal: emitter });
    await body.text();
    await sleep(10);
    assert.equal(emitter.listenerCount('abort'), 0);
    assert.equal(seen, 2);
  });

  it('a request that waited can be aborted during its response', async () => {
    throttle.onBusy(host, 100);
    const controller = new AbortController();
    const given = { dispatcher: dispatcher(), signal: controller.signal };
    const response = await undici.fetch(url, given);
    controller.abort();
    await assert.rejects(response.text(), { name: 'AbortError' });
  });

  it('a request that waited has the history of the redirect interceptor', async () => {
    throttle.onBusy(host, 100);
    const first = new undici.Agent().compose(
      undici.interceptors.redirect({ maxRedirections: 3 }),
      busyInterceptor({ throttle, maxDelayMs: 10_000 }),
    );
    const { context, body } = await undici.request(`${url}moved`, { dispatcher: first });
    await body.text();
    assert.deepEqual(/** @type {any} */ (context).history.map(String), [`${url}moved`, url]);
  });

  it('a request can be aborted after its turn and before its connection', async () => {
    // Handlers of users, for both versions of undici, that ignore the second controller.
    for (const isNew of [true, false]) {
      throttle.forget(host);
      throttle.onBusy(host, 50);
      /** @type {any} */
      let real;
      let starts = 0;
      const send = busyInterceptor({ throttle, maxDelayMs: 10_000 })((_, watched) => {
        real = watched;
        return true;
      });
      /** @type {(reason: Error) => void} */
      let giveUp = () => {};
      /** @param {any} given */
      const begin = (given) => {
        starts += 1;
        if (starts === 1) giveUp = (reason) => (given.abort ?? given).call(given, reason);
      };
      send({ origin: url, path: '/' }, isNew ? { onRequestStart: begin } : { onConnect: begin });
      while (!real) await sleep(10);
      const reason = new Error('late');
      giveUp(reason);
      /** @type {unknown[]} */
      const reasons = [];
      const abort = (/** @type {unknown} */ why) => reasons.push(why);
      if (isNew) real.onRequestStart({ abort }, {});
      else real.onConnect(abort, {});
      assert.deepEqual([starts, reasons], [2, [reason]]);
    }
  });
});

it('signal: null removes the signal of the request, as in fetch', async () => {
  throttle.onBusy(host, 200);
  const request = new Request(url, { signal: AbortSignal.timeout(AFTER_MS) });
  const response = await fetching()(request, { signal: null });
  assert.deepEqual([response.status, seen], [200, 1]);
});
