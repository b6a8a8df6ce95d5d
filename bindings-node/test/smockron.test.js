// Tests of the gatekeeper's delays in virtual time, of its options and of its tags. tests/daemon/smockron.test.js has
// tests with real masters.
'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { cpSync, mkdtempSync, readFileSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { describe, it } = require('node:test');

const { Delays, MAX_CLIENTS } = require('../smockron/delays.js');
const { gatekeeper } = require('../smockron/index.js');
const { using, warnings } = require('./shared/web.js');

/**
 * Delays in virtual time, and requests that record their results.
 * @param {import('node:test').TestContext} t
 * @param {number} [maxDelayMs]
 * @param {number} [maxDelayed]
 */
function begin(t, maxDelayMs = 5000, maxDelayed = 100) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 0 });
  const delays = new Delays(maxDelayMs, maxDelayed);
  /** @type {string[]} */
  const notes = [];
  /** @param {string} name */
  const request = (name) => ({
    arrived: Date.now(),
    given: (/** @type {string} */ _status, /** @type {number} */ until) => notes.push(`${name} gets ${until}`),
    pass: (/** @type {string} */ status) => notes.push(`${name} ${status} at ${Date.now()}`),
    reject: (/** @type {number} */ until) => notes.push(`${name} rejected, ${until}`),
  });
  // Moves in steps, because the mocked clock jumps to the end of each.
  const tick = (/** @type {number} */ ms) => {
    for (let done = 0; done < ms; done += 100) t.mock.timers.tick(100);
  };
  return { delays, notes, request, tick };
}

describe('the delays of a gatekeeper', () => {
  it('the latest time of a client is kept and never lowered', (t) => {
    const { delays } = begin(t);
    assert.equal(delays.until('a', 0), 0);
    delays.delay('a', 1000);
    delays.delay('a', 500);
    assert.equal(delays.until('a', 0), 1000);
    assert.equal(delays.until('b', 0), 0);
    assert.equal(delays.until('a', 1000), 0);
    assert.equal(delays.size, 0, 'a client whose time has passed must be removed');
  });

  it('each time is given to one request, and the next request waits for the next time', (t) => {
    const { delays, notes, request, tick } = begin(t);
    delays.delay('a', 1000);
    for (const name of ['one', 'two', 'three']) assert.ok(delays.add('a', request(name)));
    assert.deepEqual(notes, ['one gets 1000']);
    delays.delay('a', 2000);
    delays.delay('a', 3000);
    tick(10_000);
    assert.deepEqual(notes.slice(1), [
      'two gets 2000',
      'three gets 3000',
      'one DELAYED at 1000',
      'two DELAYED at 2000',
      'three DELAYED at 3000',
    ]);
    assert.equal(delays.delayed, 0);
  });

  it('waiting requests pass if the master is silent', (t) => {
    const { delays, notes, request, tick } = begin(t);
    delays.delay('a', 1000);
    for (const name of ['one', 'two', 'three']) assert.ok(delays.add('a', request(name)));
    tick(1000);
    assert.deepEqual(notes.slice(1), ['one DELAYED at 1000', 'two ACCEPTED at 1000', 'three ACCEPTED at 1000']);
    assert.equal(delays.delayed, 0);
  });

  it('waiting requests wait for a late answer of the master', (t) => {
    const { delays, notes, request, tick } = begin(t);
    delays.delay('a', 100);
    for (const name of ['one', 'two', 'three']) assert.ok(delays.add('a', request(name)));
    tick(200);
    assert.deepEqual(notes.splice(0), ['one gets 100', 'one DELAYED at 100']);
    delays.delay('a', 300);
    tick(200);
    assert.deepEqual(notes.splice(0), ['two gets 300', 'two DELAYED at 300']);
    tick(200);
    assert.deepEqual(notes.splice(0), ['three ACCEPTED at 500']);
    assert.equal(delays.delayed, 0);
  });

  it('a request that would wait too long is rejected, even after it has begun to wait', (t) => {
    const { delays, notes, request, tick } = begin(t, 1500);
    delays.delay('a', 1000);
    assert.ok(delays.add('a', request('one')));
    assert.ok(delays.add('a', request('two')));
    delays.delay('a', 2000);
    assert.equal(delays.add('a', request('three')), false);
    assert.deepEqual(notes, ['one gets 1000', 'two rejected, 2000']);
    tick(600);
    assert.ok(delays.add('a', request('four')));
    tick(5000);
    assert.deepEqual(notes.slice(2), ['four gets 2000', 'one DELAYED at 1000', 'four DELAYED at 2000']);
  });

  it('a request is rejected if too many requests of all clients wait', (t) => {
    const { delays, request, tick } = begin(t, 5000, 2);
    delays.delay('a', 1000);
    delays.delay('b', 1000);
    assert.ok(delays.add('a', request('one')));
    assert.ok(delays.add('b', request('two')));
    assert.equal(delays.add('b', request('three')), false);
    tick(1000);
    assert.equal(delays.delayed, 0);
  });

  it('the turn of a client that left goes to the next request', (t) => {
    const { delays, notes, request, tick } = begin(t);
    delays.delay('a', 1000);
    const [one, two, three] = ['one', 'two', 'three'].map(request);
    for (const delayed of [one, two, three]) assert.ok(delays.add('a', delayed));
    delays.leave('a', two);
    delays.leave('a', one);
    delays.leave('a', one);
    assert.equal(delays.delayed, 1);
    tick(5000);
    assert.deepEqual(notes, ['one gets 1000', 'three DELAYED at 1000']);
    assert.equal(delays.delayed, 0);
  });

  it('close() lets all waiting requests pass', (t) => {
    const { delays, notes, request, tick } = begin(t);
    delays.delay('a', 1000);
    for (const name of ['one', 'two']) assert.ok(delays.add('a', request(name)));
    delays.close();
    assert.deepEqual(notes.slice(1), ['one DELAYED at 0', 'two ACCEPTED at 0']);
    tick(5000);
    assert.equal(notes.length, 3);
  });

  it('the number of clients is limited, and clients with waiting requests are kept', (t) => {
    const { delays, request } = begin(t);
    delays.delay('delayed', 1000);
    assert.ok(delays.add('delayed', request('one')));
    for (let i = 0; i < MAX_CLIENTS + 10; i += 1) delays.delay(`client-${i}`, 1000);
    assert.ok(delays.size <= MAX_CLIENTS);
    assert.equal(delays.until('delayed', 0), 1000);
    assert.equal(delays.until('client-0', 0), 0);
    assert.equal(delays.until(`client-${MAX_CLIENTS + 9}`, 0), 1000);
  });
});

describe('options of a gatekeeper', () => {
  const good = { master: '127.0.0.1:10004', domain: 'web' };
  /** @type {[any, RegExp][]} */
  const mistakes = [
    [undefined, /^`options` must be an object.*, got undefined/],
    [{ domain: 'web' }, /^`master` must be a host and a port, such as '127.0.0.1:10004'.*, got undefined/],
    [{ ...good, master: '127.0.0.1' }, /^`master` must be a host and a port, .*, got "127\.0\.0\.1"/],
    [{ ...good, master: '127.0.0.1:65535' }, /^`master` must have a port from 1 to 65534, got 65535/],
    [{ ...good, control: 'tcp://x' }, /^`control` /],
    [{ ...good, domain: '' }, /^`domain` /],
    [{ ...good, domain: 'a\0b' }, /^`domain` /],
    [{ ...good, tag: 'ip' }, /^`tag` must be a function of the request.*, got "ip"/],
    [{ ...good, maxDelayMs: -1 }, /^`maxDelayMs` must be a whole number from 0 to 3600000.*, got -1/],
    [{ ...good, status: 200 }, /^`status` /],
    [{ ...good, body: 5 }, /^`body` /],
    [{ ...good, tellRejected: 1.5 }, /^`tellRejected` must be true, false, or a share from 0 to 1.*, got 1.5/],
    [{ ...good, tellRejected: -0.1 }, /^`tellRejected` /],
    [{ ...good, tellRejected: NaN }, /^`tellRejected` /],
    [{ ...good, tellRejected: '0.5' }, /^`tellRejected` /],
    [{ ...good, identifier: String }, /^`identifier` is an unknown option; the known names are .*tag/],
    [{ ...good, maxDelayMS: 5 }, /^`maxDelayMS` is an unknown option; the known names are .*maxDelayMs/],
  ];
  for (const [options, message] of mistakes) {
    it(`a wrong option is an error: ${message.source}`, () => {
      assert.throws(() => gatekeeper(options), { name: 'DthrottleError', code: 'DTHROTTLE_CONFIG', message });
    });
  }

  it('a missing zeromq package is an error that names it', (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'dthrottle-smockron-'));
    t.after(() => rmSync(folder, { recursive: true }));
    for (const part of ['smockron', 'web', 'api']) cpSync(join(__dirname, '..', part), join(folder, part), { recursive: true });
    const code = "require('./smockron/index.js').gatekeeper({ master: 'localhost:10004', domain: 'web' })";
    const { status, stderr } = spawnSync(process.execPath, ['-e', code], { cwd: folder, encoding: 'utf8' });
    assert.equal(status, 1);
    assert.match(stderr, /`smockron` needs the package zeromq: npm install zeromq \(Cannot find module 'zeromq'\)/);
  });
});

describe('tags of a gatekeeper', () => {
  const vectors = JSON.parse(readFileSync(join(__dirname, '../../tests/vectors/tags.json'), 'utf8'));
  const LOCAL = 'address\xff\x7f\0\0\x01';

  /**
   * Calls `run` with a gatekeeper whose master delays each client for an hour. `next` returns the frames of the next
   * message to the master.
   * @param {import('node:test').TestContext} t
   * @param {{ tag?: any, logInfo?: any }} options
   * @param {(get: any, keeper: any, next: () => Promise<Buffer[]>) => Promise<void>} run
   */
  async function withMaster(t, options, run) {
    const { Publisher, Subscriber } = require('zeromq');
    const accounting = new Subscriber({ linger: 0, receiveTimeout: 30_000 });
    const control = new Publisher({ linger: 0 });
    await accounting.bind('tcp://127.0.0.1:*');
    await control.bind('tcp://127.0.0.1:*');
    accounting.subscribe('');
    const addressOf = (/** @type {any} */ socket) => socket.lastEndpoint.slice('tcp://'.length);
    const keeper = gatekeeper({ master: addressOf(accounting), control: addressOf(control), domain: 'web', maxDelayMs: 0, ...options });
    t.after(() => {
      keeper.close();
      accounting.close();
      control.close();
    });
    const app = (/** @type {any} */ request, /** @type {any} */ response) => keeper(request, response, () => response.end());
    const next = async () => {
      const frames = await accounting.receive();
      await control.send([frames[0], 'DELAY_UNTIL', frames[2], String(Date.now() + 3_600_000)]);
      return frames;
    };
    /** @param {() => unknown} condition */
    const until = async (condition) => {
      const end = performance.now() + 30_000;
      while (!condition()) {
        assert.ok(performance.now() < end, `timeout while waiting for: ${condition}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    await using(app, async (get) => {
      // PUB and SUB sockets lose messages until both are connected.
      const connected = accounting.receive();
      let isConnected = false;
      connected.then(() => { isConnected = true; });
      await until(() => {
        keeper(/** @type {any} */ ({ url: '/connect', headers: {} }), /** @type {any} */ ({}), () => {});
        return isConnected;
      });
      await until(() => {
        control.send(['web\0', 'DELAY_UNTIL', 'connected', String(Date.now() + 3_600_000)]).catch(() => {});
        return keeper.until('connected') > 0;
      });
      await run(get, keeper, async () => {
        for (;;) {
          const frames = await next();
          if (String(frames[2]) !== 'connect') return frames;
        }
      });
    });
  }

  /** @param {any} request */
  const valueOf = (request) =>
    request.url === '/connect' ? 'connect' : JSON.parse(String(new URL(request.url, 'http://x').searchParams.get('value')));
  /** @param {string} json */
  const path = (json) => `/?value=${encodeURIComponent(json)}`;

  it('tags are the values that clients send or their addresses, and the master can delay each', async (t) => {
    const emitted = await warnings(() => withMaster(t, { tag: valueOf }, async (get, keeper, next) => {
      /** Sends requests until one is rejected. @param {string} json */
      const rejected = async (json) => {
        for (let count = 0; count < 1000; count += 1) if ((await get(path(json))).status === 503) return true;
        return false;
      };
      for (const { json, tag } of vectors.usable) {
        assert.equal((await get(path(json))).status, 200, json);
        assert.equal(String((await next())[2]), tag, json);
        assert.ok(await rejected(json), json);
        for (let status = ''; status !== 'REJECTED';) status = String((await next())[1]);
      }
      assert.equal(keeper.counts.untagged, 0);
      for (const { json } of vectors.unusable) {
        await get(path(json));
        const [, , tag] = await next();
        assert.equal(tag.toString('latin1'), LOCAL, json);
        assert.ok(await rejected(json), json);
        for (let status = ''; status !== 'REJECTED';) status = String((await next())[1]);
      }
      assert.equal(keeper.counts.failed, 0);
      assert.ok(keeper.until(Buffer.from(LOCAL, 'latin1')) > Date.now());
      assert.equal(keeper.until('127.0.0.1'), 0, 'a client must not be able to choose this tag');
    }));
    assert.deepEqual(emitted.map(({ code }) => code), ['DTHROTTLE_NO_TAG']);
    assert.match(emitted[0].message, /^tag must return text .* got null; the client is counted by its address/);
  });

  it('a tag above 1,024 bytes is replaced by the address, and the log text is cut', async (t) => {
    /** @type {any[]} */
    let [value, info] = ['connect', ''];
    const options = { tag: (/** @type {any} */ r) => (r.url === '/connect' ? 'connect' : value), logInfo: () => info };
    const emitted = await warnings(() => withMaster(t, options, async (get, keeper, next) => {
      /** @type {[any, string][]} */
      const cases = [
        ['x'.repeat(1024), 'x'.repeat(1024)],
        ['\u00e9'.repeat(512), '\xc3\xa9'.repeat(512)],
        [new Uint8Array(1024), '\0'.repeat(1024)],
        ['x'.repeat(1025), LOCAL],
        ['\u00e9'.repeat(513), LOCAL],
        ['x'.repeat(1_000_000), LOCAL],
        [new Uint8Array(1025), LOCAL],
      ];
      for (const [given, tag] of cases) {
        [value, info] = [given, '\u20ac'.repeat(100_000)];
        await get();
        const frames = await next();
        assert.equal(frames[2].toString('latin1'), tag);
        assert.equal(String(frames[5]), '\u20ac'.repeat(341), 'the text must be cut between characters');
      }
      assert.equal(keeper.counts.untagged, 4);
    }));
    assert.deepEqual(emitted.map(({ code }) => code), ['DTHROTTLE_NO_TAG']);
    assert.ok(!emitted[0].message.includes('xxx'), 'the warning must not contain text that clients choose');
  });

  it('requests without a tag and an address share one bucket that no client can choose', async (t) => {
    const emitted = await warnings(() => withMaster(t, { tag: valueOf }, async (_get, keeper, next) => {
      const request = { url: path('[]'), headers: {} };
      keeper(request, { end() {}, setHeader() {} }, () => {});
      assert.equal((await next())[2].toString('latin1'), 'address\xff');
    }));
    assert.deepEqual(emitted.map(({ code }) => code), ['DTHROTTLE_NO_TAG']);
  });

  it('the address is the tag if the function throws, which is counted and reported once', async (t) => {
    const tag = (/** @type {any} */ request) => {
      if (request.url === '/connect') return 'connect';
      throw new Error('no session');
    };
    const emitted = await warnings(() => withMaster(t, { tag }, async (get, keeper, next) => {
      for (let i = 0; i < 2; i += 1) {
        await get();
        assert.equal((await next())[2].toString('latin1'), LOCAL);
      }
      assert.deepEqual([keeper.counts.failed, keeper.counts.untagged], [2, 2]);
    }));
    assert.deepEqual(emitted.map(({ code }) => code), ['DTHROTTLE_FAILED', 'DTHROTTLE_NO_TAG']);
  });
});
