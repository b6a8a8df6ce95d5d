// Tests that the workers of PM2 share the application's table: in cluster mode, also over a reload, which replaces the
// processes, and in fork mode, in which each worker has its own port.
'use strict';

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { basename, join } = require('node:path');
const { after, describe, it } = require('node:test');
const { promisify } = require('node:util');

const { burst } = require('./load.js');
const { TestServers, request, freePort } = require('./servers.js');

const PM2 = require.resolve('pm2/bin/pm2');
const OPTIONS = JSON.stringify({ rate: '1 per 100 years', burst: 60, tag: 'header:X-Client' });
const run = promisify(execFile);

describe('PM2', () => {
  const servers = new TestServers();
  // A folder with a short path, because the socket of PM2 is in it.
  const home = mkdtempSync(join(tmpdir(), 'pm2-'));
  /** @type {NodeJS.ProcessEnv} */
  const environment = { ...process.env, PM2_HOME: home, PM2_DISABLE_VERSION_CHECK: 'true', CI: 'true' };
  /** @param {string[]} words */
  const pm2 = (...words) => run(process.execPath, [PM2, ...words, '--silent'], { env: environment });
  after(async () => {
    await pm2('kill');
    await servers.end();
    rmSync(home, { recursive: true, force: true });
  });

  /** @param {string} folder */
  const tables = (folder) => servers.tables().filter((name) => name.includes(basename(folder))).length;

  /**
   * Waits until `count` processes respond, none of them among the given ones, and returns them.
   * @param {number} port
   * @param {number} count
   * @param {ReadonlySet<string>} [others]
   */
  async function processes(port, count, others = new Set()) {
    for (const end = Date.now() + 60_000; Date.now() < end; ) {
      const answers = await Promise.allSettled(Array.from({ length: 16 }, () => request(port, '/', { client: `look ${Math.random()}` })));
      const seen = new Set(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.process : '')));
      if (seen.size === count && ![...seen].some((pid) => pid === '' || others.has(pid))) return seen;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return assert.fail('the workers do not answer');
  }

  it('PM2 in cluster mode admits exactly the burst, and a reload keeps the buckets', async () => {
    const folder = servers.folder();
    const port = await freePort();
    Object.assign(environment, { PORT: String(port), OPTIONS });
    await pm2('start', join(folder, 'app.js'), '--instances', '4', '--name', 'web');
    const before = await processes(port, 4);
    const seen = await burst(port, 120);
    assert.deepEqual(seen.statuses, { 200: 60, 429: 60 });
    assert.ok(seen.processes.size > 1, 'one worker answered all requests, so the test shows nothing');
    await pm2('reload', 'web');
    await processes(port, 4, before);
    assert.deepEqual((await burst(port, 16)).statuses, { 429: 16 });
    assert.deepEqual((await burst(port, 16, 'somebody else')).statuses, { 200: 16 });
    assert.equal(tables(folder), 1);
  });

  it('PM2 in fork mode admits exactly the burst over all instances', async () => {
    const folder = servers.folder();
    const ports = await Promise.all(Array.from({ length: 4 }, freePort));
    const env = { PORT: ports.join(' '), OPTIONS };
    const app = { name: 'forks', script: join(folder, 'app.js'), exec_mode: 'fork', instances: ports.length, env };
    const file = join(folder, 'pm2.json');
    writeFileSync(file, JSON.stringify({ apps: [app] }));
    await pm2('start', file);
    const instances = await Promise.all(ports.map((port) => processes(port, 1)));
    const { stdout } = await pm2('jlist');
    const modes = JSON.parse(stdout).filter(({ name }) => name === 'forks').map(({ pm2_env }) => pm2_env.exec_mode);
    assert.deepEqual(modes, ports.map(() => 'fork_mode'));
    assert.equal(new Set(instances.flatMap((pids) => [...pids])).size, ports.length);
    // No worker gets enough requests for the whole burst, so at least two must allow some.
    const seen = await Promise.all(ports.map((port) => burst(port, 30)));
    const count = (/** @type {number} */ status) => seen.reduce((sum, { statuses }) => sum + (statuses[status] ?? 0), 0);
    assert.deepEqual({ 200: count(200), 429: count(429) }, { 200: 60, 429: 60 });
    assert.equal(tables(folder), 1);
  });
});
