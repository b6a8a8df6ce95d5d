// Tests that the workers of a server keep to one rate, and also several servers that share a table or a cluster, in Node
// and Python. The tests run concurrently, because they mostly wait.
'use strict';

const assert = require('node:assert/strict');
const { tmpdir } = require('node:os');
const { mkdtempSync, rmSync } = require('node:fs');
const { join } = require('node:path');
const { after, describe, it } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { compareWithBucket, burst, load } = require('./load.js');
const { TestServers, request, twoNodes } = require('./servers.js');

const RATE = 40;
const BURST = 40;
const PATH = '/limited';

/** The options for applications in Node, as tests/web/node_app.py has them in Python. */
const HERE = { routes: [PATH], tag: 'header:X-Client' };

/** @param {{ withoutSecret: boolean }} config A configuration as Python spells it. */
function inPython({ withoutSecret, ...rest }) {
  return { ...rest, without_secret: withoutSecret };
}

describe('several servers', { concurrency: true }, () => {
  const testServers = new TestServers();
  const tables = mkdtempSync(join(tmpdir(), 'dthrottle-tables-'));
  after(async () => {
    await testServers.end();
    rmSync(tables, { recursive: true });
  });

  /** @type {Promise<unknown>[]} */
  const starting = [];

  /**
   * Starts servers. No test measures while others start servers, which takes the whole machine.
   * @template T
   * @param {() => Promise<T>} start
   * @returns {Promise<T>}
   */
  async function started(start) {
    const all = start();
    starting.push(all);
    await sleep(1000); // until all tests have come so far
    await Promise.allSettled(starting);
    return all;
  }

  /**
   * Sends load to two servers that are nodes, and compares the allowed requests with one bucket.
   * @param {number[]} ports
   */
  async function areOneBucket(ports) {
    for (const port of ports) await request(port, PATH, { client: 'nobody' }); // by which it joins
    await sleep(2000);
    const seen = await load(ports, 20, 'client', PATH);
    const { passed, bucket } = compareWithBucket(seen, RATE, BURST);
    for (const { count, processes, statuses } of seen) {
      assert.deepEqual(Object.keys(statuses), ['200', '429']);
      assert.ok(count > 1.25 * RATE * 20, 'too few requests were sent for this test');
      assert.ok(processes.size > 1);
    }
    assert.ok(Math.abs(passed / bucket - 1) < 0.02, `${passed} passed; one bucket gives ${bucket}`);
  }

  it('a server with four workers keeps to the rate', async () => {
    const server = await started(() => testServers.node(testServers.folder(), { rate: `${RATE}/s`, tag: 'header:X-Client' }));
    const [seen] = await load([server.port], 14);
    const times = seen.allowedAt.filter((time) => time > seen.emptyAt);
    const seconds = (times[times.length - 1] - seen.emptyAt) / 1000;
    assert.ok(seconds >= 10, `the bucket was empty for ${seconds} s`);
    assert.deepEqual(Object.keys(seen.statuses), ['200', '429']);
    assert.equal(seen.processes.size, 4);
    assert.ok(Math.abs(times.length / seconds / RATE - 1) < 0.02, `${times.length / seconds} a second`);
  });

  it('two servers in Node share one bucket as nodes', async () => {
    const configs = await twoNodes();
    const servers = await started(() => Promise.all(configs.map((cluster) =>
      testServers.node(testServers.folder(), { rate: `${RATE}/s`, burst: BURST, cluster, ...HERE }))));
    await areOneBucket(servers.map(({ port }) => port));
  });

  it('servers in Node and Python share one bucket as nodes', async () => {
    const [here, there] = await twoNodes();
    const servers = await started(() => Promise.all([
      testServers.node(testServers.folder(), { rate: `${RATE}/s`, burst: BURST, cluster: here, ...HERE }),
      testServers.gunicorn(testServers.folder(), { rate: `${RATE}/s`, burst: BURST, cluster: inPython(there) }),
    ]));
    await areOneBucket(servers.map(({ port }) => port));
  });

  it('servers in Node and Python share a named table exactly', async () => {
    const shared = { rate: '1 per 100 years', burst: 100, table: { name: 'shared', dir: tables, size: 1000 } };
    const servers = await started(() => Promise.all([
      testServers.node(testServers.folder(), { ...shared, ...HERE }),
      testServers.gunicorn(testServers.folder(), shared),
    ]));
    const seen = await Promise.all(servers.map(({ port }) => burst(port, 150, 'client', PATH)));
    assert.equal(seen[0].statuses[200] + seen[1].statuses[200], 100);
    assert.equal(seen[0].statuses[429] + seen[1].statuses[429], 200);
    for (const { processes } of seen) assert.ok(processes.size > 1);
  });

  it('unconnected servers have separate buckets', async () => {
    const servers = await started(() => Promise.all([1, 2].map(() =>
      testServers.node(testServers.folder(), { rate: `${RATE}/s`, burst: BURST, ...HERE }, { workers: 2 }))));
    const seen = await load(servers.map(({ port }) => port), 4, 'client', PATH);
    const { passed, bucket } = compareWithBucket(seen, RATE, BURST);
    assert.ok(passed > 1.7 * bucket, `${passed} passed; one bucket gives ${bucket}`);
  });
});
