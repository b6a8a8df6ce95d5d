// A named table outlives its processes: the warning about a refusal that an earlier process caused, and fresh
// tables for tests.
'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { basename, join } = require('node:path');
const { afterEach, after, beforeEach, describe, it } = require('node:test');

const PAGE = readFileSync(join(__dirname, '../../docs/node.md'), 'utf8');

/** Prints the statuses of three requests. */
const PROGRAM = `
  const { once } = require('node:events');
  const app = require('express')();
  app.use(require('dthrottle/express').throttle('2/day'));
  app.get('/', (request, response) => response.send('hello'));
  const server = app.listen(0, async () => {
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await fetch('http://127.0.0.1:' + server.address().port)).status);
    console.log(statuses.join(' '));
    server.close();
  });
`;

describe('the table of an application that is started again', () => {
  const root = mkdtempSync(join(tmpdir(), 'dthrottle-fresh-'));
  let folder = '';
  after(() => rmSync(root, { recursive: true }));
  beforeEach(() => {
    folder = mkdtempSync(join(root, `app${process.pid}`));
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(join(__dirname, '..'), join(folder, 'node_modules/dthrottle'), 'dir');
    symlinkSync(join(__dirname, '../../node_modules/express'), join(folder, 'node_modules/express'), 'dir');
    writeFileSync(join(folder, 'package.json'), '{ "name": "app" }');
  });
  const tables = () => ['/run/dthrottle', '/dev/shm'].filter((dir) => existsSync(dir)).flatMap((dir) => {
    return readdirSync(dir).filter((name) => name.includes(`-${basename(folder)}-app-`)).map((name) => join(dir, name));
  });
  afterEach(() => tables().forEach((file) => unlinkSync(file)));

  /**
   * Runs Node in the folder of the application.
   * @param {Record<string, string>} env
   * @param {string[]} args
   */
  function run(env, ...args) {
    // Without NODE_TEST_CONTEXT, which makes `node --test` a part of this test.
    const all = { ...process.env, NODE_TEST_CONTEXT: undefined, ...env };
    return spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', env: all, timeout: 60_000 });
  }

  it('a refusal caused by an earlier process emits one warning with the table and the command that clears it', () => {
    writeFileSync(join(folder, 'main.js'), PROGRAM);
    const first = run({}, 'main.js');
    assert.deepEqual([first.stdout, first.stderr], ['200 200 429\n', '']);
    const second = run({}, 'main.js');
    assert.equal(second.stdout, '429 429 429\n');
    assert.equal(second.stderr.match(/\[DTHROTTLE_EARLIER_PROCESS\]/g)?.length, 1, second.stderr);
    const [, name] = /the table "([^"]+)"/.exec(second.stderr) ?? [];
    assert.ok(tables()[0].endsWith(`-${name}`), second.stderr);
    assert.ok(second.stderr.includes(`\`dthrottle table remove ${name}\``), second.stderr);
    assert.match(second.stderr, /DTHROTTLE_FRESH_TABLES=1 in tests.*docs\/node\.md#dthrottle_earlier_process/);
  });

  it('the table is empty in each process if DTHROTTLE_FRESH_TABLES is 1', () => {
    writeFileSync(join(folder, 'main.js'), PROGRAM);
    for (let i = 0; i < 2; i += 1) {
      const { stdout, stderr } = run({ DTHROTTLE_FRESH_TABLES: '1' }, 'main.js');
      assert.deepEqual([stdout, stderr], ['200 200 429\n', '']);
    }
    assert.deepEqual(tables(), []);
  });

  it('the table is empty in each process that sets process.env.DTHROTTLE_FRESH_TABLES', () => {
    writeFileSync(join(folder, 'main.js'), `process.env.DTHROTTLE_FRESH_TABLES = '1';\n${PROGRAM}`);
    for (let i = 0; i < 2; i += 1) assert.equal(run({}, 'main.js').stdout, '200 200 429\n');
  });

  it('another value of DTHROTTLE_FRESH_TABLES is an error', () => {
    writeFileSync(join(folder, 'main.js'), PROGRAM);
    assert.match(run({ DTHROTTLE_FRESH_TABLES: 'yes' }, 'main.js').stderr, /`DTHROTTLE_FRESH_TABLES` must be 1 or 0, got "yes"/);
  });

  it('the example test of docs/node.md passes in every run with fresh tables, and only in the first without', () => {
    const [, code = ''] = /^```js test\n(.*?)^```$/ms.exec(PAGE) ?? [];
    const [, command = ''] = /^ *"test": "(.*)"$/m.exec(PAGE) ?? [];
    const [variable, value] = command.split(' ')[0].split('=');
    assert.equal(command, `${variable}=${value} node --test`);
    writeFileSync(join(folder, 'app.test.js'), code);
    const passes = (/** @type {Record<string, string>} */ env) => run(env, '--test').status === 0;
    assert.deepEqual([passes({ [variable]: value }), passes({ [variable]: value })], [true, true]);
    assert.deepEqual([passes({}), passes({})], [true, false]);
  });
});
