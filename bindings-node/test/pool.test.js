// Tests that all middleware of a process share the throttle with its exchange, warnings, and the limit of delayed
// requests. Also tests closing middleware.
'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const http = require('node:http');
const { once } = require('node:events');
const { existsSync, mkdtempSync, readdirSync, rmSync, unlinkSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, describe, it } = require('node:test');

const { ManualClock, Throttle } = require('../index.js');
const { throttle: express } = require('../web/express.js');
const { throttle: plain } = require('../web/http.js');
const { ask, kinds, start, warnings } = require('./shared/web.js');

/** @typedef {any} Any */

const WEB = join(__dirname, '../web');
const NAME = `pool${process.pid}`;

/** The beginning of every program: counts the threads that exchange, and sends a request to a middleware. */
const PRELUDE = `
const { threads } = require(${JSON.stringify(join(__dirname, 'shared/threads.js'))});
const { throttle } = require(${JSON.stringify(join(WEB, 'express.js'))});
const table = ${JSON.stringify(NAME)};
const cluster = { name: 'pool', listen: '127.0.0.1:0', peers: [] };
const response = { setHeader() {}, getHeader() {} };
const get = (limit) => {
  let passed = false;
  limit({ method: 'GET', url: '/', headers: {}, socket: { remoteAddress: '127.0.0.1' } }, { ...response, end() {} }, () => { passed = true; });
  return passed;
};
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const noThreads = async () => { while (threads() > 0) await sleep(5); };
// A thread gets its name shortly after its start. Waits a little longer for threads that should not exist.
const countThreads = async (min) => { while (threads() < min) await sleep(5); await sleep(100); return threads(); };
`;

describe('the middleware of a process', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dthrottle-pool-'));
  after(() => {
    rmSync(folder, { recursive: true });
    for (const dir of ['/run/dthrottle', '/dev/shm'].filter((each) => existsSync(each))) {
      for (const name of readdirSync(dir)) if (name.includes(`-${NAME}`)) unlinkSync(join(dir, name));
    }
  });

  /** @param {string} code */
  function run(code) {
    const file = join(folder, 'app.cjs');
    writeFileSync(file, `${PRELUDE}(async () => {${code}})().then((result) => console.log(JSON.stringify(result)));`);
    const { status, stdout, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8', timeout: 60_000 });
    assert.equal(status, 0, stderr);
    assert.equal(stderr, '');
    return JSON.parse(stdout);
  }

  it('all middleware of a process has one exchange with the cluster', () => {
    const seen = run(`
      const rates = ['2 per 9 years', '3 per 9 years', '4 per 9 years'];
      const limits = rates.map((rate, i) => throttle(rate, { domain: 'd' + i, table, cluster }));
      limits.push(throttle({ domains: { d0: { rate: rates[0] }, e: { rate: '1 per 9 years' } }, domain: 'e', table, cluster }));
      const before = threads();
      const passed = limits.map((limit) => [get(limit), get(limit), get(limit), get(limit), get(limit)].filter(Boolean).length);
      const during = await countThreads(1);
      // The same rules use the same throttle. A middleware with other rules is too late to join it.
      const same = throttle(rates[0], { domain: 'd0', table, cluster });
      const later = throttle('5 per 9 years', { domain: 'later', table, cluster });
      const more = [get(same), get(later), await countThreads(2)];
      for (const limit of limits) limit.close();
      const open = [get(limits[0]), get(same), await countThreads(2)];
      same.close();
      later.close();
      await noThreads();
      return { before, passed, during, more, open };
    `);
    assert.deepEqual(seen, {
      before: 0,
      passed: [2, 3, 4, 1],
      during: 1,
      more: [false, true, 2],
      open: [true, false, 2],
    });
  });

  it('all middleware with the same file has one exchange with the cluster', () => {
    const file = join(folder, 'limits.toml');
    writeFileSync(file, `
      [domains.a]
      rate = "2 per 9 years"
      [domains.b]
      rate = "3 per 9 years"
      [cluster]
      name = "pool"
      listen = "127.0.0.1:0"
    `);
    const seen = run(`
      const limits = ['a', 'b'].map((domain) => throttle(${JSON.stringify(file)}, { domain, table: table + '-file' }));
      const passed = limits.map((limit) => [get(limit), get(limit), get(limit), get(limit)].filter(Boolean).length);
      const during = await countThreads(1);
      for (const limit of limits) limit.close();
      await noThreads();
      return [passed, during];
    `);
    assert.deepEqual(seen, [[2, 3], 1]);
  });

  it('a Fastify application has one exchange for all routes, which ends with the application', () => {
    const seen = run(`
      const app = require(${JSON.stringify(require.resolve('fastify'))})();
      await app.register(require(${JSON.stringify(join(WEB, 'fastify.js'))}).throttle, { rate: '9 per 9 years', domain: 'all', table, cluster });
      for (const i of [1, 2, 3]) app.get('/' + i, { config: { throttle: { rate: i + ' per 9 years', domain: 'r' + i } } }, async () => '');
      app.get('/shared', { config: { throttle: { cost: 9 } } }, async () => '');
      app.get('/', async () => '');
      const statuses = async (url) => [(await app.inject(url)).statusCode, (await app.inject(url)).statusCode];
      const result = [await statuses('/1'), await statuses('/2'), await statuses('/shared'), (await app.inject('/')).statusCode];
      const during = await countThreads(1);
      await app.close();
      await noThreads();
      return [...result, during];
    `);
    assert.deepEqual(seen, [[200, 429], [200, 200], [200, 429], 429, 1]);
  });

  it('the same warning of several middlewares is emitted once', async () => {
    const emitted = await warnings(() => {
      for (const domain of ['a', 'b', 'c']) express({ windowMs: 1000, limit: 5, table: false, domain });
      express({ windowMs: 1000, limit: 6, table: false });
    });
    assert.deepEqual(emitted.map(({ code }) => code), ['DTHROTTLE_WINDOW', 'DTHROTTLE_WINDOW']);
    assert.notEqual(emitted[0].message, emitted[1].message);
  });

  it('maxDelayed limits the delayed requests of all middleware together', async () => {
    const [one, two] = await Promise.all(['a', 'b'].map((domain) =>
      start('Express 5', { rate: '1 per 9 s', domain, maxDelayMs: 60_000, maxDelayed: 2, tag: () => 't', table: false })));
    try {
      const got = [1, 2, 3].map(() => one.get().then(({ status }) => status, () => 'gone'));
      while (one.counts.delayed < 2) await new Promise((resolve) => setTimeout(resolve, 5));
      // The first request passes, and the second exceeds maxDelayed.
      assert.deepEqual(await two.statuses(2), [200, 429]);
      assert.equal(await Promise.race(got), 200);
    } finally {
      one.close();
      two.close();
    }
  });
});

describe('closed middleware', () => {
  for (const kind of kinds) {
    it(`${kind}: closed middleware lets all requests pass`, async () => {
      const clock = new ManualClock();
      const mine = new Throttle({ rate: '1/day', clock });
      const web = await start(kind, { throttle: mine });
      try {
        assert.deepEqual(await web.statuses(2), [200, 429]);
        web.tools.close();
        web.tools.close();
        assert.deepEqual(await web.statuses(3), [200, 200, 200]);
        assert.equal(mine.peek('x').allowed, true, 'closing middleware must not close the throttle of the application');
      } finally {
        web.close();
      }
    });
  }
});

describe('a plain handler', () => {
  it("a throttled plain handler returns the handler's result, also after a delay", async () => {
    /** @type {Any} */
    const make = plain;
    /** @type {Any[]} */
    const given = [];
    const throttled = make((/** @type {Any} */ _request, /** @type {Any} */ response) => {
      response.end();
      return 'done';
    }, new Throttle({ rate: '20/s', burst: 1, clock: new ManualClock() }), { maxDelayMs: 60 });
    const server = http.createServer((request, response) => given.push(throttled(request, response))).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    const statuses = await Promise.all([1, 2, 3].map(async () => (await ask(port)).status));
    server.close();
    assert.deepEqual(statuses.sort(), [200, 200, 429]);
    assert.equal(given.filter((each) => each === 'done').length, 1);
    assert.equal(given.filter((each) => each === undefined).length, 1);
    assert.deepEqual(await Promise.all(given).then((all) => all.sort()), ['done', 'done', undefined]);
  });
});
