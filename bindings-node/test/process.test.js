// Tests of the addon in a process: threads, memory, and the end of the process.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { describe, it } = require('node:test');
const { Worker } = require('node:worker_threads');

const { run } = require('./shared/package.js');

const INDEX = join(__dirname, '..');

/** A thread that answers each message with the remaining units, and can keep itself busy in between. */
const WORKER = `
const { parentPort, workerData } = require('node:worker_threads');
const { ManualClock, Throttle } = require(workerData.index);
const throttle = new Throttle({ rate: '100/s', clock: new ManualClock() });
parentPort.on('message', () => parentPort.postMessage(throttle.check('t').remaining));
parentPort.postMessage('ready');
if (workerData.busy) setImmediate(() => { for (;;) new Throttle('1/s').check('t'); });
`;

/** @param {boolean} busy */
async function startWorker(busy) {
  const worker = new Worker(WORKER, { eval: true, workerData: { index: INDEX, busy } });
  assert.deepEqual(await once(worker, 'message'), ['ready']);
  return worker;
}

/** @param {Worker} worker */
async function remainingIn(worker) {
  const answer = once(worker, 'message');
  worker.postMessage('check');
  return (await answer)[0];
}

/**
 * Runs a program in a new process and returns its output.
 * @param {string} code
 * @param {string[]} flags
 */
const program = (code, ...flags) =>
  run(__dirname, process.execPath, ...flags, '-e', code.replaceAll('INDEX', JSON.stringify(INDEX))).trim();

describe('a process', () => {
  it('threads have their own throttles and may be terminated', async () => {
    const { Throttle, ManualClock } = require('../index.js');
    const throttle = new Throttle({ rate: '100/s', clock: new ManualClock() });
    const quiet = await startWorker(false);
    const busy = await startWorker(true);
    assert.equal(await remainingIn(quiet), 99);
    assert.equal(throttle.check('t').remaining, 99);
    await busy.terminate();
    assert.equal(await remainingIn(quiet), 98);
    assert.equal(throttle.check('t').remaining, 98);
    const late = await startWorker(false);
    assert.equal(await remainingIn(late), 99);
    await Promise.all([quiet.terminate(), late.terminate()]);
    assert.equal(throttle.check('t').remaining, 97);
  });

  it('a process may load the addon only in threads, one after another', () => {
    const code = `
      const { once } = require('node:events');
      const { Worker } = require('node:worker_threads');
      (async () => {
        for (let i = 0; i < 3; i += 1) {
          const worker = new Worker(
            'const { Throttle } = require(' + JSON.stringify(INDEX) + ');' +
            'if (!new Throttle("1/s").allow("t")) process.exit(1);',
            { eval: true },
          );
          console.log((await once(worker, 'exit'))[0]);
        }
      })();
    `;
    assert.equal(program(code), '0\n0\n0');
  });

  it('a process ends by itself without close()', () => {
    const code = `
      const { ManualClock, Throttle } = require(INDEX);
      globalThis.kept = [new Throttle('1/s'), new Throttle({ rate: 1, clock: new ManualClock() })];
      console.log(kept.every((throttle) => throttle.allow('t')));
    `;
    assert.equal(program(code), 'true');
  });

  it('the memory of unreachable throttles is freed', () => {
    const code = `
      const { ManualClock, Throttle } = require(INDEX);
      // A small table, because in a large one each of a few tags would use another page of memory.
      const config = { rate: '100/s', domains: { api: { rate: 5 } }, table: { size: 1000 } };
      const clock = new ManualClock();
      function churn(count) {
        for (let i = 0; i < count; i += 1) {
          const throttle = new Throttle({ ...config, clock });
          for (let tag = 0; tag < 100; tag += 1) throttle.domain('api').check('tag' + tag);
        }
      }
      // Finalizers run only between tasks of the event loop.
      const rest = () => new Promise((resolve) => setImmediate(() => { gc(); setImmediate(resolve); }));
      (async () => {
        churn(1000);
        await rest();
        const before = process.memoryUsage.rss();
        let most = 0;
        for (let i = 0; i < 10; i += 1) {
          churn(1000);
          most = Math.max(most, process.memoryUsage.rss());
          await rest();
        }
        console.log(JSON.stringify([(process.memoryUsage.rss() - before) / 1e6, (most - before) / 1e6]));
      })();
    `;
    const [kept, most] = JSON.parse(program(code, '--expose-gc'));
    // 10,000 throttles with 100 buckets each would need far more than 100 MB.
    assert.ok(kept < 60, `${kept} MB more are in use after 10,000 throttles`);
    assert.ok(most < 200, `${most} MB more were in use at some time`);
  });

  it('a missing addon is an error that names the file', () => {
    const code = `
      Object.defineProperty(process, 'arch', { value: 'pdp11' });
      try { require(INDEX); } catch (error) { console.log(error.message); }
    `;
    assert.match(program(code), /dthrottle\.\w+-pdp11\.node does not exist.*make build-node/);
  });
});

describe('a file', () => {
  const { Throttle } = require('../index.js');

  it('fromFile() reads a file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'dthrottle-file-'));
    const path = join(folder, 'ünï.toml');
    writeFileSync(path, '[domains.api]\nrate = "7/s"\n');
    const { rules } = Throttle.fromFile(path).domain('api');
    assert.deepEqual(rules, [{ name: 'rule1', limit: 7, windowMs: 1000 }]);
    rmSync(folder, { recursive: true });
  });

  it('a file that cannot be read is an error', () => {
    for (const path of ['no/such/file.toml', __dirname, '', 'nul\0byte']) {
      assert.throws(() => Throttle.fromFile(path), { code: 'DTHROTTLE_FILE', name: 'DthrottleError' });
    }
    for (const path of [undefined, null, 5, Buffer.from('x'), new URL('file:///x')]) {
      assert.throws(() => Throttle.fromFile(/** @type {any} */ (path)), { code: 'DTHROTTLE_ARGUMENT' });
    }
  });

  it('an error in a file names the file and the line', () => {
    assert.throws(() => Throttle.fromFile(__filename), { code: 'DTHROTTLE_CONFIG', line: 1 });
  });
});
