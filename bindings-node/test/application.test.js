// The name of an application, and the tables that its workers share.
'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { basename, join } = require('node:path');
const { after, beforeEach, describe, it } = require('node:test');

const { applicationName } = require('../web/application.js');

const EXPRESS = JSON.stringify(join(__dirname, '../web/express.js'));

/** @param {string} folder @param {string | undefined} name */
function application(folder, name) {
  mkdirSync(folder, { recursive: true });
  if (name !== undefined) writeFileSync(join(folder, 'package.json'), JSON.stringify({ name }));
  return folder;
}

describe('the name of an application', () => {
  const root = mkdtempSync(join(tmpdir(), 'dthrottle-name-'));
  after(() => rmSync(root, { recursive: true }));
  const shop = application(join(root, 'shop'), '@acme/shop');
  application(join(shop, 'src/deep'), undefined);

  it('the name consists of the folder and the package name', () => {
    const name = applicationName(join(shop, 'server.js'), '/');
    assert.match(String(name), /^shop-acme-shop-[0-9a-f]{10}$/);
    for (const main of ['src/deep/worker.js', 'server', 'src/main.ts']) assert.equal(applicationName(join(shop, main), '/'), name);
  });

  it('another folder or another package has another name', () => {
    const names = [
      applicationName(join(shop, 'server.js'), '/'),
      applicationName(join(application(join(root, 'b/shop'), '@acme/shop'), 'server.js'), '/'),
      applicationName(join(application(join(root, 'c/shop'), 'other'), 'server.js'), '/'),
      applicationName(join(application(join(root, 'shop/inner'), 'inner'), 'server.js'), '/'),
    ];
    assert.equal(new Set(names).size, names.length);
  });

  it('a tool that starts the application does not change the name', () => {
    const name = applicationName(join(shop, 'server.js'), '/');
    for (const main of ['/usr/lib/node_modules/pm2/lib/ProcessContainer.js', join(shop, 'node_modules/.bin/ts-node')]) {
      assert.equal(applicationName(main, join(shop, 'src')), name);
    }
    // tests/web-node runs PM2 itself.
    process.env.pm_exec_path = join(shop, 'server.js');
    try {
      assert.equal(applicationName('/usr/lib/node_modules/pm2/lib/ProcessContainerFork.js', '/'), name);
      assert.notEqual(applicationName('/srv/other/main.js', '/'), name);
    } finally {
      delete process.env.pm_exec_path;
    }
  });

  it('an application without a valid package.json has the name of its folder', () => {
    const lone = mkdtempSync(join(root, 'lone-'));
    const name = applicationName(join(lone, 'main.js'), '/');
    if (!existsSync('/tmp/package.json')) assert.match(String(name), new RegExp(`^${basename(lone)}-[0-9a-f]{10}$`));
    writeFileSync(join(lone, 'package.json'), '{ broken');
    assert.match(String(applicationName(join(lone, 'main.js'), '/')), new RegExp(`^${basename(lone)}-[0-9a-f]{10}$`));
    const odd = application(join(root, ' ünï~', '.'), '../../etc');
    assert.match(String(applicationName(join(odd, 'main.js'), '/')), /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/);
  });

  it('an interactive Node has no name', () => {
    assert.equal(applicationName('[eval]', '/'), undefined);
    assert.equal(applicationName('[worker eval]', '/'), undefined);
  });
});

describe('the table of an application', () => {
  const root = mkdtempSync(join(tmpdir(), 'dthrottle-app-'));
  const folder = application(join(root, `app${process.pid}`), 'app');
  symlinkSync(join(__dirname, '../../node_modules'), join(folder, 'node_modules'), 'dir');
  const isOurs = (/** @type {string} */ name) => name.startsWith(`dthrottle-${process.getuid?.()}-app${process.pid}-`);
  const dirs = () => ['/run/dthrottle', '/dev/shm'].filter((dir) => existsSync(dir));
  const tables = () => dirs().flatMap((dir) => readdirSync(dir).filter(isOurs).map((name) => join(dir, name)));
  const remove = () => tables().forEach((file) => unlinkSync(file));
  beforeEach(remove);
  after(() => {
    remove();
    rmSync(root, { recursive: true });
  });

  /**
   * Runs a program of the application and returns its output.
   * @param {string} file
   * @param {string} code
   * @param {string[]} flags
   */
  function run(file, code, ...flags) {
    writeFileSync(join(folder, file), `const { throttle } = require(${EXPRESS});\n${code}`);
    const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, join(folder, file)], { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    return { out: stdout.trim(), err: stderr.trim() };
  }

  it('programs of the application share the table one after another', () => {
    const code = "console.log(throttle('3/day').domain.check('t').remaining);";
    assert.equal(run('a.cjs', code).out, '2');
    assert.equal(run('b.cjs', code).out, '1');
    assert.equal(tables().length, 1);
    assert.match(tables()[0], /-app\d+-app-[0-9a-f]{10}$/);
  });

  it('a process counts for itself, with one warning, if another file has the name of the table', () => {
    const code = `
      const left = (options) => throttle('3/day', options).domain.check('t').remaining;
      console.log(left(), left({ domain: 'x' }));
      process.on('exit', () => { try { left({ table: process.argv[2] }); } catch (error) { console.log(error.code); } });`;
    run('a.cjs', code);
    const [file] = tables();
    for (const squat of [symlinkSync, (/** @type {string} */ _, /** @type {string} */ path) => writeFileSync(path, 'mine')]) {
      unlinkSync(file);
      squat('/nowhere', file);
      const { out, err } = run('a.cjs', code.replace('process.argv[2]', JSON.stringify(basename(file).replace(/^dthrottle-\d+-/, ''))));
      // A table that was named by the user is an error instead.
      assert.equal(out, '2 2\nDTHROTTLE_FILE');
      assert.equal(err.match(/\[DTHROTTLE_TABLE\]/g)?.length, 1, err);
      assert.match(err, /buckets are shared only with forked children/);
    }
  });

  it('each cluster secret has its own table, which all workers share', () => {
    const secret = (/** @type {string} */ text) => `{ name: 'web', listen: '127.0.0.1:0', secret: ${JSON.stringify(text)} }`;
    const ask = (/** @type {string} */ cluster) => run('a.cjs', `
      const { domain } = throttle({ rate: '9 per 9 years', cluster: ${cluster} });
      console.log(domain.check('t').remaining);
      process.exit();
    `, '--no-warnings').out;
    const toml = join(folder, 'limits.toml');
    const one = 'the first secret of them';
    const two = 'the second secret of them';
    assert.deepEqual([ask('undefined'), ask(secret(one)), ask(secret(two))], ['8', '8', '8']);
    assert.equal(tables().length, 3);
    // Processes with the same secret find their table, even if another one was removed.
    unlinkSync(String(tables().sort()[0]));
    writeFileSync(toml, `rate = '9 per 9 years'\n[cluster]\nname = 'web'\nlisten = '127.0.0.1:0'\nsecret = '${two}'\n`);
    const file = `console.log(throttle(${JSON.stringify(toml)}).domain.check('t').remaining); process.exit();`;
    assert.deepEqual([ask(secret(one)), ask(secret(two)), run('b.cjs', file).out], ['7', '7', '6']);
    assert.deepEqual(tables().map((name) => name.slice(-2)).sort(), ['-2', '-3']);
    // The secret appears neither in the name nor in the output.
    process.env.NODE_DEBUG = 'dthrottle';
    try {
      assert.match(run('b.cjs', file).err, /shared in table app\d+-app-[0-9a-f]{10}-3$/m);
    } finally {
      delete process.env.NODE_DEBUG;
    }
    const named = basename(tables()[0]).replace(/^dthrottle-\d+-/, '');
    const { out } = run('c.cjs', `
      const make = () => throttle({ rate: '9 per 9 years', table: '${named}', cluster: ${secret('the third secret of them')} });
      try { make(); } catch (error) { console.log(error.code, error.field, error.message); }
    `);
    assert.match(out, new RegExp(`^DTHROTTLE_CONFIG table .*dthrottle table remove ${named}\``));
  });

  it('a TOML file without a table uses that of the application', () => {
    const toml = join(folder, 'table.toml');
    const left = (/** @type {string} */ options) =>
      run('a.cjs', `console.log(throttle(${JSON.stringify(toml)}, ${options}).domain.check('t').remaining);`).out;
    const named = `{ table: 'app${process.pid}-x' }`;
    for (const more of ["[domains]\ntable = { rate = '5/day' }", "[domains.table]\nrate = '5/day'", "domains.table.rate = '5/day'"]) {
      writeFileSync(toml, `rate = '3/day'\n${more}\n`);
      assert.deepEqual([left('{}'), left('{}'), left(named), left(named)], ['2', '1', '2', '1'], more);
      assert.deepEqual([left("{ domain: 'table' }"), left("{ table: false }"), left("{ table: false }")], ['4', '2', '2']);
      remove();
    }
    // A table without a name gets that of the application. A given name stays.
    writeFileSync(toml, "rate = '3/day'\n[table]\nsize = 1000\n");
    assert.deepEqual([left('{}'), left('{}'), tables().length], ['2', '1', 1]);
    remove();
    writeFileSync(toml, `rate = '3/day'\n[table]\nname = 'app${process.pid}-own'\nsize = 1000\n`);
    assert.deepEqual([left('{}'), left('{}')], ['2', '1']);
    assert.match(tables().join(), /\/dthrottle-\d+-app\d+-own$/);
    for (const table of ["'x'", 'false', '{ size: 5 }']) {
      const { out } = run('b.cjs', `try { throttle(${JSON.stringify(toml)}, { table: ${table} }); } catch (error) { console.log(error.field, error.message); }`);
      assert.match(out, /^table .*table\.toml: `table` is already described in the configuration/);
    }
  });

  it('table: false makes no named table', () => {
    const code = "console.log(throttle('3/day', { table: false }).domain.check('t').remaining);";
    assert.equal(run('a.cjs', code).out, '2');
    assert.equal(run('a.cjs', code).out, '2');
    assert.deepEqual(tables(), []);
  });

  it('middlewares with other rules get other domains in the table', () => {
    const { out, err } = run('a.cjs', `
      const names = ['3/day', '5/day', '3/day', '7/day'].map((rate) => throttle(rate).domain.name);
      names.push(throttle('9/day', { domain: 'login' }).domain.name, throttle('9/day', { routes: ['/x'] }).domain.name);
      names.push(throttle('9/day', { table: false }).domain.name);
      console.log(JSON.stringify(names));
    `);
    assert.deepEqual(JSON.parse(out), ['default', 'default 2', 'default', 'default 3', 'login', '/x', 'default']);
    assert.equal(err.match(/DTHROTTLE_SAME_DOMAIN/g)?.length, 2);
    assert.match(run('b.cjs', "throttle('1/s', { domain: 'a' }); throttle('2/s', { domain: 'a' });").err, /DTHROTTLE_SAME_DOMAIN.*disturb/);
  });

  it('threads share the table, and some may be terminated', () => {
    const { out } = run('main.cjs', `
      const { Worker, isMainThread, parentPort } = require('node:worker_threads');
      const { once } = require('node:events');
      const { domain } = throttle('1000000 per 100 years');
      if (isMainThread) main(); else work();
      function work() {
        parentPort.on('message', (count) => {
          for (let i = 0; i < count; i += 1) domain.check('t');
          parentPort.postMessage(count);
          if (count === 1) setImmediate(function busy() { for (let i = 0; i < 1000; i += 1) domain.check('other'); setImmediate(busy); });
        });
        parentPort.postMessage(0);
      }
      async function main() {
        const workers = [1, 2, 3].map(() => new Worker(__filename));
        await Promise.all(workers.map((worker) => once(worker, 'message')));
        for (const worker of workers) { worker.postMessage(1000); await once(worker, 'message'); }
        workers[0].postMessage(1);
        await once(workers[0], 'message');
        await workers[0].terminate();
        workers[1].postMessage(1000);
        await once(workers[1], 'message');
        console.log(1000000 - domain.check('t').remaining);
        await Promise.all([workers[1].terminate(), workers[2].terminate()]);
      }
    `);
    assert.equal(out, '4002');
    assert.equal(tables().length, 1);
  });

  it('a process with middleware ends by itself, without warnings', () => {
    const { err } = run('a.cjs', `
      const app = require('express')();
      app.use(throttle({ rate: '100/s', burst: 200, maxDelayMs: 100, skipFailedRequests: true }));
      app.get('/', (request, response) => response.json(request.rateLimit.remaining));
      const server = app.listen(0, async () => {
        const url = 'http://127.0.0.1:' + server.address().port;
        for (let i = 0; i < 300; i += 1) await (await fetch(url)).text();
        server.closeAllConnections();
        server.close();
      });
    `, '--trace-warnings', '--trace-deprecation');
    assert.equal(err, '');
  });

  it('a million calls do not leak memory', () => {
    const { out } = run('a.cjs', `
      const { EventEmitter } = require('node:events');
      const limit = throttle({ rate: '1000000/s', tag: 'header:x-client', skipFailedRequests: true });
      const response = () => Object.assign(new EventEmitter(), {
        getHeader: () => undefined, setHeader() {}, headersSent: true, statusCode: 500, socket: null,
      });
      function calls(count) {
        for (let i = 0; i < count; i += 1) {
          const answer = response();
          const client = 'client' + (i % 100000);
          const headers = { headers: { 'x-client': client }, rawHeaders: ['X-Client', client] };
          limit({ method: 'GET', ...headers, socket: {} }, answer, () => {});
          answer.emit('close');
        }
      }
      calls(100000);
      gc();
      const before = process.memoryUsage();
      calls(1000000);
      gc();
      const now = process.memoryUsage();
      console.log(JSON.stringify([limit.counts.passed, (now.heapUsed - before.heapUsed) / 1e6, (now.rss - before.rss) / 1e6]));
    `, '--expose-gc');
    const [passed, heap, rss] = JSON.parse(out);
    assert.equal(passed, 1_100_000);
    assert.ok(heap < 2, `the heap grew by ${heap} MB`);
    assert.ok(rss < 60, `the process grew by ${rss} MB`);
  });

  it('requests of Express do not leak memory', () => {
    const { out } = run('a.cjs', `
      const { IncomingMessage, ServerResponse } = require('node:http');
      const { Socket } = require('node:net');
      const app = require('express')();
      const limit = throttle({ rate: '1000000/s', skipFailedRequests: true });
      const sockets = Array.from({ length: 3000 }, (_, i) =>
        Object.defineProperty(new Socket(), 'remoteAddress', { value: '10.0.' + (i >> 8) + '.' + (i & 255) }));
      let informed = 0;
      function calls(count) {
        for (let i = 0; i < count; i += 1) {
          const request = Object.setPrototypeOf(new IncomingMessage(sockets[i % 3000]), app.request);
          const response = Object.setPrototypeOf(new ServerResponse(request), app.response);
          limit(request, response, () => {
            if (request.rateLimit.limit === 1000000) informed += 1;
          });
          response.emit('close');
        }
      }
      const heaps = [], sizes = [];
      for (let round = 0; round < 6; round += 1) {
        calls(75000);
        gc();
        heaps.push(process.memoryUsage().heapUsed / 1e6);
        sizes.push(process.memoryUsage.rss() / 1e6);
      }
      console.log(JSON.stringify([limit.counts.passed, informed, heaps, sizes]));
    `, '--expose-gc');
    const [passed, informed, heaps, sizes] = JSON.parse(out);
    assert.deepEqual([passed, informed], [450_000, 450_000]);
    // The JavaScript engine frees and takes tens of megabytes from time to time, so a leak shows in the peaks.
    const growth = (/** @type {number[]} */ all) => Math.max(...all.slice(3)) - Math.max(...all.slice(0, 3));
    assert.ok(growth(heaps) < 2, `the heap grew: ${heaps} MB`);
    assert.ok(growth(sizes) < 15, `the process grew: ${sizes} MB`);
  });
});
