// Tests of tables: sharing and warnings. Named tables are in a temporary folder.
'use strict';

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { once } = require('node:events');
const { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, describe, it } = require('node:test');
const { Worker } = require('node:worker_threads');

const { ManualClock, Throttle } = require('../index.js');
const { run } = require('./shared/package.js');

const INDEX = join(__dirname, '..');
const RATE = '1 per 100 years';

const folder = mkdtempSync(join(tmpdir(), 'dthrottle-table-'));
after(() => rmSync(folder, { recursive: true }));

/** @param {string} name */
const named = (name) => ({ name, dir: folder, size: 1000 });

/**
 * The warnings of a call, which are emitted in a later tick.
 * @param {() => unknown} call
 */
async function warningsOf(call) {
  /** @type {Error[]} */
  const warnings = [];
  const listen = (/** @type {Error} */ warning) => warnings.push(warning);
  process.on('warning', listen);
  call();
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', listen);
  return warnings;
}

describe('a table', () => {
  it('a table is shared by throttles that use the same name', () => {
    const [one, other] = [1, 2].map(() => new Throttle({ rate: RATE, burst: 10, table: named('web') }));
    const toml = `rate = '${RATE}'\nburst = 10\ntable = { name = 'web', dir = '${folder}' }`;
    assert.equal(one.allow('t', 6), true);
    assert.equal(other.allow('t', 6), false);
    assert.equal(Throttle.fromToml(toml).check('t', 4).remaining, 0);
    assert.equal(new Throttle({ rate: RATE, burst: 10, table: named('api') }).allow('t', 10), true);
    const files = readdirSync(folder).map((name) => name.split('-').at(-1));
    assert.deepEqual(files.sort(), ['api', 'web']);
  });

  it('a table without a name is not shared', () => {
    for (const table of [undefined, {}, { private: true }, { size: 100 }, { size: '1 MB' }]) {
      const [one, other] = [1, 2].map(() => new Throttle({ rate: RATE, table }));
      assert.deepEqual([one.allow('t'), other.allow('t'), one.allow('t')], [true, true, false]);
    }
  });

  it('a table is shared by threads and processes that use its name', async () => {
    const table = named('crowd');
    const code = `
      const { Throttle } = require(${JSON.stringify(INDEX)});
      const throttle = new Throttle({ rate: '${RATE}', burst: 1000, table: ${JSON.stringify(table)} });
      let taken = 0;
      for (let i = 0; i < 400; i += 1) taken += Number(throttle.allow('t'));
    `;
    const threads = [1, 2].map(
      () => new Worker(`${code} require('node:worker_threads').parentPort.postMessage(taken);`, { eval: true }),
    );
    const taken = await Promise.all(threads.map(async (thread) => (await once(thread, 'message'))[0]));
    taken.push(Number(run(__dirname, process.execPath, '-e', `${code} console.log(taken);`)));
    assert.deepEqual(taken, [400, 400, 200]);
  });

  it('a named table with a manual clock is an error', () => {
    const options = { rate: 1, table: named('clock'), clock: new ManualClock() };
    assert.throws(() => new Throttle(options), { code: 'DTHROTTLE_CONFIG', field: 'table' });
    assert.ok(!readdirSync(folder).some((name) => name.endsWith('clock')));
  });

  it('a table that cannot be shared emits one warning and works', async () => {
    const dir = join(folder, 'missing');
    const toml = `rate = '${RATE}'\ntable = { name = 'web', dir = '${dir}' }`;
    const own = join(folder, 'own');
    mkdirSync(own);
    writeFileSync(join(own, 'dthrottle.toml'), toml);
    const makers = [
      () => new Throttle({ rate: RATE, table: { name: 'web', dir } }),
      () => Throttle.fromToml(toml),
      () => Throttle.fromFile(join(own, 'dthrottle.toml')),
    ];
    for (const make of makers) {
      const [warning, ...more] = await warningsOf(() => {
        const throttle = make();
        assert.deepEqual([throttle.allow('t'), throttle.allow('t')], [true, false]);
      });
      assert.deepEqual(more, []);
      assert.equal(warning.name, 'DthrottleWarning');
      assert.ok(warning.message.includes(dir), warning.message);
    }
    rmSync(own, { recursive: true });
  });

  it('a table with another size than requested emits one warning', async () => {
    const open = (/** @type {number} */ size) =>
      new Throttle({ rate: RATE, table: { ...named('size'), size } });
    assert.deepEqual(await warningsOf(() => open(1000)), []);
    const warnings = await warningsOf(() => open(1_000_000));
    assert.equal(warnings.length, 1);
    assert.match(warnings[0].message, /exists with room for \d+ tags instead of 1000000/);
  });

  const skip = process.geteuid?.() === 0 ? false : 'only root can be another user';
  it("an error about another user's table names the file, its owner and the setting", { skip }, () => {
    const dir = mkdtempSync('/dev/shm/dthrottle-test-');
    chmodSync(dir, 0o1777);
    const file = join(dir, 'dthrottle-0-web');
    execFileSync('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', 'touch', file]);
    const open = () => new Throttle({ rate: RATE, table: { name: 'web', dir } });
    assert.throws(open, (/** @type {Error & { code: string }} */ error) => {
      for (const part of [file, 'belongs to user 65534 (nobody), not to user 0', 'set `dir`']) assert.ok(error.message.includes(part), error.message);
      return error.code === 'DTHROTTLE_FILE';
    });
    rmSync(dir, { recursive: true });
  });
});

describe('a secret', () => {
  it('a secret that every user can read emits one warning', async () => {
    const file = join(folder, 'secret');
    writeFileSync(file, 'sixteen bytes and more');
    const cluster = { name: 'web', listen: '127.0.0.1:0', secret: { file } };
    const open = () => new Throttle({ rate: RATE, cluster }).close();
    chmodSync(file, 0o640);
    assert.deepEqual(await warningsOf(open), []);
    chmodSync(file, 0o644);
    const [warning, ...more] = await warningsOf(open);
    assert.deepEqual(more, []);
    assert.ok(warning.message.includes(`every user of this machine can read ${file} (mode 644)`), warning.message);
    rmSync(file);
  });
});
