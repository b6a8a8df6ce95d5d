// Tests that the workers of node:cluster share one burst without configuration, in every framework. rates.test.js tests
// the rates.
'use strict';

const assert = require('node:assert/strict');
const { after, describe, it } = require('node:test');

const { burst } = require('./load.js');
const { TestServers } = require('./servers.js');

describe('node:cluster', { concurrency: 2 }, () => {
  const testServers = new TestServers();
  after(() => testServers.end());

  for (const framework of ['express', 'express4', 'fastify', 'koa', 'hono', 'http']) {
    it(`${framework}: node:cluster admits exactly the burst`, async () => {
      const folder = testServers.folder();
      const options = { rate: '1 per 100 years', burst: 60, tag: 'header:X-Client' };
      const server = await testServers.node(folder, options, { framework });
      const seen = await burst(server.port, 120);
      assert.deepEqual(seen.statuses, { 200: 60, 429: 60 });
      assert.ok(seen.processes.size > 1, 'one worker answered all requests, so the test shows nothing');
      await server.stop();
      if (framework !== 'express') return;
      const again = await testServers.node(folder, options, { framework, workers: 1, warning: /DTHROTTLE_EARLIER_PROCESS/ });
      assert.deepEqual((await burst(again.port, 8)).statuses, { 429: 8 }, 'a restart must keep the buckets');
      assert.deepEqual((await burst(again.port, 8, 'somebody else')).statuses, { 200: 8 });
    });
  }

  it('workers with private tables count for themselves', async () => {
    const options = { rate: '1 per 100 years', burst: 20, tag: 'header:X-Client', table: false };
    const server = await testServers.node(testServers.folder(), options);
    const { statuses, processes } = await burst(server.port, 120);
    assert.ok(statuses[200] > 20 && statuses[200] <= 20 * processes.size, JSON.stringify(statuses));
  });

  it('each application makes exactly one table', async () => {
    const folders = [testServers.folder(), testServers.folder()];
    const options = { rate: '1 per 100 years', burst: 10 };
    const servers = await Promise.all(folders.map((folder) => testServers.node(folder, options, { workers: 2 })));
    for (const { port } of servers) assert.equal((await burst(port, 16)).statuses[200], 10);
    for (const folder of folders) {
      assert.equal(testServers.tables().filter((name) => name.includes(String(folder.split('/').pop()))).length, 1);
    }
  });
});
