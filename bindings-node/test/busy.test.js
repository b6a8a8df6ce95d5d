// Tests of the adapters for fetch, undici and axios with a real server that answers 429 or 503 on demand, and of a table
// that processes share.
'use strict';

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { readFileSync, rmSync } = require('node:fs');
const { createServer } = require('node:http');
const { join } = require('node:path');
const { after, before, beforeEach, describe, it } = require('node:test');

const axios = require('axios');
const undici = require('undici');

const { BusyThrottle, DthrottleError } = require('../index.js');
const { ServiceBusyError, busyAxios, busyFetch, busyInterceptor } = require('../busy/index.js');
const { retryAfterMs, serviceOf } = require('../busy/index.js');

/** @import { CallOptions } from '../busy/index.js' */

const vectors = JSON.parse(readFileSync(join(__dirname, '../../tests/vectors/calls.json'), 'utf8'));

/** @type {[number, Record<string, string>][]} The next responses of the server. Afterwards it answers 200. */
let answers = [];
let seen = 0;
const server = createServer((_, response) => {
  seen += 1;
  const [status, headers] = answers.shift() ?? [200, {}];
  response.writeHead(status, headers).end('x');
});
let url = '';
let host = '';
/** An address without a server. */
let nowhere = '';

before(async () => {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  host = `127.0.0.1:${/** @type {any} */ (server.address()).port}`;
  url = `http://${host}/`;
  const closed = createServer();
  await new Promise((resolve) => closed.listen(0, '127.0.0.1', () => resolve(undefined)));
  nowhere = `http://127.0.0.1:${/** @type {any} */ (closed.address()).port}/`;
  await new Promise((resolve) => closed.close(resolve));
});
beforeEach(() => {
  answers = [];
  seen = 0;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

/** @type {Record<string, (options?: CallOptions) => (url: string) => Promise<number>>} */
const makers = {
  fetch(options) {
    const get = busyFetch(options);
    return async (to) => (await get(to)).status;
  },
  'fetch with a Request': (options) => {
    const get = busyFetch(options);
    return async (to) => (await get(new Request(to))).status;
  },
  'undici request': (options) => {
    const dispatcher = new undici.Agent().compose(busyInterceptor(options));
    return async (to) => {
      const { statusCode, body } = await undici.request(to, { dispatcher });
      await body.text();
      return statusCode;
    };
  },
  'undici fetch': (options) => {
    const dispatcher = new undici.Agent().compose(busyInterceptor(options));
    return async (to) => {
      const response = await undici.fetch(to, { dispatcher });
      await response.text();
      return response.status;
    };
  },
  axios(options) {
    const instance = busyAxios(axios.create({ validateStatus: () => true }), options);
    return async (to) => (await instance.get(to)).status;
  },
  'axios that throws': (options) => {
    const instance = busyAxios(axios.create(), options);
    return async (to) => {
      try {
        return (await instance.get(to)).status;
      } catch (error) {
        if (axios.isAxiosError(error) && error.response) return error.response.status;
        throw error;
      }
    };
  },
};

/**
 * The ServiceBusyError, which may be the cause of an error of fetch.
 * @param {any} error
 * @returns {ServiceBusyError}
 */
function busyError(error) {
  const found = error instanceof ServiceBusyError ? error : error?.cause;
  assert(found instanceof ServiceBusyError, error);
  return found;
}

for (const [name, make] of Object.entries(makers)) {
  describe(name, () => {
    it('requests are refused after a busy response', async () => {
      const throttle = new BusyThrottle();
      const get = make({ throttle });
      assert.equal(await get(url), 200);
      answers = [[503, { 'Retry-After': '60' }]];
      assert.equal(await get(url), 503);
      await assert.rejects(get(url), (error) => {
        const { code, service, waitMs, message } = busyError(error);
        assert.deepEqual([code, service], ['SERVICE_BUSY', host]);
        assert(waitMs > 55_000 && waitMs <= 60_000);
        assert.match(message, /is busy: not sent, try again in \d+ ms$/);
        return true;
      });
      const { sent, refused, good, busy } = throttle.stats();
      assert.deepEqual([seen, sent, refused, good, busy], [2, 2, 1, 1, 1]);
    });

    it('a request waits for its turn within maxDelayMs', async () => {
      const get = make({ maxDelayMs: 5000 });
      answers = [[429, { 'Retry-After': '1' }]];
      assert.equal(await get(url), 429);
      const begun = performance.now();
      assert.equal(await get(url), 200);
      const waited = performance.now() - begun;
      assert(waited > 900 && waited < 5000, `${waited}`);
    });

    it('the options statuses and service define busy responses and the name of the service', async () => {
      const throttle = new BusyThrottle();
      const get = make({ throttle, statuses: [500], service: () => 'all' });
      answers = [
        [503, {}],
        [500, { 'Retry-After': '60' }],
      ];
      assert.deepEqual([await get(url), await get(url)], [503, 500]);
      await assert.rejects(get(url), (error) => busyError(error).service === 'all');
      assert(!throttle.shouldSend('all'));
    });

    it('requests pass if the throttle is closed', async () => {
      const throttle = new BusyThrottle();
      const get = make({ throttle });
      answers = [
        [503, { 'Retry-After': '60' }],
        [503, {}],
      ];
      assert.equal(await get(url), 503);
      await assert.rejects(get(url));
      throttle.close();
      assert.deepEqual([await get(url), await get(url), await get(url)], [503, 200, 200]);
      assert.equal(throttle.stats().busy, 1);
    });

    it('the function service receives the whole URL', async () => {
      const throttle = new BusyThrottle();
      const get = make({ throttle, service: (to) => to });
      answers = [[503, { 'Retry-After': '60' }]];
      assert.equal(await get(`${url}one?a=b`), 503);
      assert.equal(await get(`${url}two`), 200);
      assert.equal(throttle.shouldSend(`${url}one?a=b`), false);
    });

    it('a connection error is not a busy response', async () => {
      const throttle = new BusyThrottle();
      await assert.rejects(make({ throttle })(nowhere));
      const { sent, busy, good } = throttle.stats();
      assert.deepEqual([sent, busy, good], [1, 0, 0]);
    });
  });
}

describe('all adapters', () => {
  it('a waiting request ends when it is aborted', async () => {
    const throttle = new BusyThrottle();
    throttle.onBusy(host, 60_000);
    const signal = AbortSignal.timeout(50);
    const get = busyFetch({ throttle, maxDelayMs: 100_000 });
    await assert.rejects(get(url, { signal }), { name: 'TimeoutError' });
    const instance = busyAxios(axios.create(), { throttle, maxDelayMs: 100_000 });
    await assert.rejects(instance.get(url, { signal: AbortSignal.timeout(50) }), axios.isCancel);
    const options = { throttle, maxDelayMs: 100_000 };
    const dispatcher = new undici.Agent().compose(busyInterceptor(options));
    const given = { dispatcher, signal: AbortSignal.timeout(50) };
    await assert.rejects(undici.request(url, given), { name: 'TimeoutError' });
    await assert.rejects(undici.request(url, given), { name: 'TimeoutError' });
    await assert.rejects(get(url, { signal: AbortSignal.abort() }), { name: 'AbortError' });
    assert.deepEqual([seen, throttle.stats().sent], [0, 0]);
    await dispatcher.close();
  });

  it('many waiting requests call the throttle rarely', async () => {
    // If every turn woke all waiting requests, there would be 20,000 calls.
    for (const name of ['fetch', 'undici request', 'axios']) {
      const throttle = new BusyThrottle({ floor: 200 });
      throttle.onBusy(host);
      const get = makers[name]({ throttle, maxDelayMs: 60_000 });
      await Promise.all(Array.from({ length: 200 }, () => get(url)));
      const { sent, refused } = throttle.stats();
      assert(sent === 200 && refused < 2000, `${name}: ${refused}`);
    }
  });

  it('a retry of axios waits for a new turn', async () => {
    const throttle = new BusyThrottle({ floor: 50 });
    const instance = busyAxios(axios.create(), { throttle, maxDelayMs: 5000 });
    instance.interceptors.response.use(undefined, (error) => instance.request(error.config));
    answers = [
      [503, {}],
      [503, {}],
    ];
    assert.equal((await instance.get(url)).status, 200);
    const { sent, busy, good } = throttle.stats();
    assert.deepEqual([seen, sent, busy, good], [3, 3, 2, 1]);
  });

  it('an error of the function service is passed on and nothing is sent', async () => {
    const fails = () => {
      throw new RangeError('no name');
    };
    for (const make of Object.values(makers)) {
      const hidden = (/** @type {any} */ error) => error.cause ?? error;
      await assert.rejects(make({ service: fails })(url), (error) => hidden(error).message === 'no name');
      const wrong = { service: /** @type {any} */ (() => 7) };
      await assert.rejects(make(wrong)(url), (error) => hidden(error).code === 'DTHROTTLE_ARGUMENT');
    }
    assert.equal(seen, 0);
  });

  it('an unreadable Retry-After makes no pause', async () => {
    for (const garbage of ['-5', 'soon', 'foo 2099', 'Mon 12345', 'hello 1/1/2090', '1e9']) {
      for (const make of Object.values(makers)) {
        const throttle = new BusyThrottle();
        answers = [[503, { 'Retry-After': garbage }]];
        assert.equal(await make({ throttle })(url), 503);
        assert(throttle.turn(host).waitMs <= 1000, garbage);
      }
    }
  });

  it('after a redirect of fetch the response counts for the last service', async () => {
    const throttle = new BusyThrottle();
    const other = host.replace('127.0.0.1', 'localhost');
    answers = [
      [302, { Location: `http://${other}/` }],
      [503, {}],
    ];
    assert.equal((await busyFetch({ throttle })(url)).status, 503);
    assert.equal(throttle.limit(host), Infinity);
    assert.notEqual(throttle.limit(other), Infinity);
  });

  it('a response of axios is counted if its configuration was copied', async () => {
    const throttle = new BusyThrottle();
    const instance = axios.create({ validateStatus: () => true });
    // Request interceptors of axios run in reverse order.
    instance.interceptors.request.use((config) => ({ ...config }));
    busyAxios(instance, { throttle });
    answers = [[503, { 'Retry-After': '60' }]];
    assert.equal((await instance.get(url)).status, 503);
    await assert.rejects(instance.get(url), ServiceBusyError);
  });

  it('a body is not read before its turn', async () => {
    const throttle = new BusyThrottle();
    throttle.onBusy(host, 60_000);
    let read = 0;
    async function* parts() {
      read += 1;
      yield Buffer.from('part');
    }
    const dispatcher = new undici.Agent().compose(busyInterceptor({ throttle }));
    const body = parts();
    const requestOptions = /** @type {any} */ ({ dispatcher, method: 'POST', body });
    await assert.rejects(undici.request(url, requestOptions), ServiceBusyError);
    const init = /** @type {any} */ ({ method: 'POST', body, duplex: 'half' });
    await assert.rejects(busyFetch({ throttle })(url, init), ServiceBusyError);
    assert.equal(read, 0);
    throttle.forget(host);
    const response = await busyFetch({ throttle })(url, init);
    assert.deepEqual([response.status, read, seen], [200, 1, 1]);
    await dispatcher.close();
  });

  it('a wrong option is an error that names it', () => {
    /** @type {[any, RegExp][]} */
    const wrongs = [
      [{ throttle: 7 }, /^`throttle` must be a BusyThrottle, got 7$/],
      [{ maxDelayMs: -1 }, /^`maxDelayMs` must be a number of milliseconds from 0 to a year, got -1$/],
      [{ maxDelayMs: NaN }, /^`maxDelayMs` must be/],
      [{ maxDelayMs: '1' }, /^`maxDelayMs` must be a number, got "1"$/],
      [{ statuses: 503 }, /^`statuses` must be a list such as \[429, 503\], got 503$/],
      [{ service: 'api' }, /^`service` must be a function from URL to name, got "api"$/],
      [{ maxDelay: 1 }, /^unknown option "maxDelay"/],
    ];
    for (const [options, message] of wrongs) {
      for (const make of [busyFetch, busyInterceptor, (/** @type {any} */ o) => busyAxios(axios.create(), o)]) {
        assert.throws(() => make(options), (/** @type {any} */ error) => {
          assert(error instanceof DthrottleError && error.code === 'DTHROTTLE_ARGUMENT');
          assert.match(error.message, message);
          return true;
        });
      }
    }
    assert.throws(() => busyAxios(/** @type {any} */ ({})), /^.*`instance` must be an axios instance/);
  });

  it('serviceOf() returns host and port as in Python', () => {
    for (const { url: from, service } of vectors.services) assert.equal(serviceOf(from), service, from);
    // Many calls, so that the JavaScript engine compiles the function.
    const names = Array.from({ length: 50_000 }, () => serviceOf('http://b\u00fccher.example/'));
    assert.deepEqual([...new Set(names)], ['xn--bcher-kva.example']);
  });

  it('retryAfterMs() reads seconds or a date as in Python', () => {
    for (const { why, value, now, seconds } of vectors.retry_after) {
      const ms = seconds === null ? undefined : seconds * 1000;
      assert.equal(retryAfterMs(value, now * 1000), ms, `${why}: ${value}`);
    }
    assert.equal(retryAfterMs(undefined), undefined);
    assert.equal(retryAfterMs('Fri, 31 Dec 9999 23:59:59 GMT'), 86_400_000 * 365);
  });
});

it('processes share limits in a named table', () => {
  const table = `test-busy-${process.pid}`;
  const busy = new BusyThrottle({ table });
  try {
    const ask = `
      const { BusyThrottle } = require(${JSON.stringify(require.resolve('../index.js'))});
      console.log(new BusyThrottle({ table: ${JSON.stringify(table)} }).shouldSend('a'));`;
    const answer = () => execFileSync(process.execPath, ['-e', ask], { encoding: 'utf8' }).trim();
    assert.equal(answer(), 'true');
    busy.onBusy('a', 60_000);
    assert.equal(answer(), 'false');
  } finally {
    for (const dir of ['/run/dthrottle', '/dev/shm']) rmSync(`${dir}/dthrottle-${process.getuid?.()}-${table}+busy`, { force: true });
  }
});
