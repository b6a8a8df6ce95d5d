// Tests of clusters on real sockets of this machine: in one process, in several, and in threads.
'use strict';

const assert = require('node:assert/strict');
const { spawn, spawnSync } = require('node:child_process');
const { createSocket } = require('node:dgram');
const { once } = require('node:events');
const { join } = require('node:path');
const { describe, it } = require('node:test');
const { setTimeout } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');

const { BusyThrottle, Throttle } = require('../index.js');

const INDEX = join(__dirname, '..');
const ZEROS = '0'.repeat(16);

/**
 * Ports that are free.
 * @param {number} count
 */
async function freePorts(count) {
  const sockets = Array.from({ length: count }, () => createSocket('udp4'));
  for (const socket of sockets) await once(socket.bind(0, '127.0.0.1'), 'listening');
  const ports = sockets.map((socket) => socket.address().port);
  for (const socket of sockets) socket.close();
  return ports;
}

/**
 * The options of a node. Its buckets fill so slowly that all numbers are exact.
 * @param {number} port
 * @param {number[]} peers
 * @param {object} [more]
 */
const options = (port, peers, more) => ({
  rate: '1 per 100 years',
  burst: 1000,
  cluster: {
    name: 'test',
    listen: `127.0.0.1:${port}`,
    peers: peers.map((peer) => `127.0.0.1:${peer}`),
    ...more,
  },
});

/**
 * Waits for a condition. The test does not depend on the time.
 * @param {string} what
 * @param {() => unknown} done
 */
async function until(what, done) {
  for (let i = 0; i < 6000; i += 1) {
    if (await done()) return;
    await setTimeout(10);
  }
  assert.fail(`condition not met within 60 s: ${what}`);
}

/**
 * Uses a tag and waits until all nodes have counted it. Tries again with another tag, because a node accepts no reports
 * while it starts, and late reports are not charged on a busy machine.
 * @param {(tag: string) => unknown} use
 * @param {(tag: string) => unknown} known
 */
async function agree(use, known) {
  for (let i = 0; i < 50; i += 1) {
    const tag = `tag ${i}`;
    await use(tag);
    for (let look = 0; look < 100; look += 1) {
      if (await known(tag)) return;
      await setTimeout(10);
    }
  }
  assert.fail('the nodes did not agree on the balance of any tag');
}

/** @param {Throttle} throttle */
function statsOf(throttle) {
  const stats = throttle.clusterStats();
  assert.ok(stats);
  return stats;
}

/** @param {Throttle} throttle */
const peersUp = (throttle) => statsOf(throttle).peers.filter(({ state }) => state === 'up');

/**
 * Runs a program in a new process, which must end by itself, and returns its output.
 * @param {string} code
 * @param {unknown} config
 */
function program(code, config) {
  const head = `
    const { BusyThrottle, Throttle } = require(${JSON.stringify(INDEX)});
    const { threads } = require(${JSON.stringify(join(__dirname, 'shared/threads.js'))});
    const config = ${JSON.stringify(config)};
    const sleep = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    function threadsUntil(count) {
      for (let i = 0; i < 6000 && threads() !== count; i += 1) sleep(10);
      return threads();
    }
  `;
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, ['-e', head + code], {
    encoding: 'utf8',
    timeout: 120_000,
  });
  assert.deepEqual([status, signal], [0, null], stderr);
  return stdout.trim();
}

describe('nodes of one process', () => {
  it('nodes of one process agree on buckets, see each other, and leave', async () => {
    const ports = await freePorts(2);
    const one = new Throttle(options(ports[0], [ports[1]]));
    const two = new Throttle(options(ports[1], []));
    for (const node of [one, two]) node.start();
    await until('two nodes', () => peersUp(one).length === 1 && peersUp(two).length === 1);

    await agree(
      (tag) => {
        assert.equal(one.allow(tag, 30), true);
        for (let i = 0; i < 20; i += 1) two.check(tag);
      },
      (tag) => [one, two].every((node) => node.peek(tag).balance === 950),
    );

    // The statistics of a peer are updated with a delay.
    await until('a report in the statistics of the peer', () => peersUp(one)[0].received > 0);
    const [mine, theirs] = [statsOf(one), statsOf(two)];
    assert.match(mine.node, /^[0-9a-f]{16}$/);
    assert.notEqual(mine.node, theirs.node);
    assert.notEqual(mine.incarnation, ZEROS);
    assert.equal(mine.pid, process.pid);
    const [peer] = mine.peers;
    assert.equal(peer.node, theirs.node);
    assert.equal(peer.incarnation, theirs.incarnation);
    assert.equal(peer.address, `127.0.0.1:${ports[1]}`);
    assert.ok(peer.lost === 0 && peer.repaired >= 0);
    assert.ok(peer.ageMs >= 0 && peer.delayMs >= 0);
    assert.ok(mine.counts.datagramsSent > 0 && mine.counts.reportsReceived > 0);
    assert.equal(mine.counts.droppedMalformed, 0);
    assert.equal(one.stats().unreported, 0);

    const events = one.events();
    const up = events.find(({ kind }) => kind === 'peer_up');
    assert.equal(up?.node, theirs.node);
    assert.ok(up.number >= 1 && up.ageMs >= 0 && up.value === 0);
    const last = events[events.length - 1].number;
    assert.deepEqual(one.events(last), []);

    two.close();
    await until('goodbye', () => one.events(last).some(({ kind }) => kind === 'peer_left'));
    await until('a peer that has left', () => peersUp(one).length === 0);
    one.close();
  });

  it('nodes with another secret form another cluster', async () => {
    const ports = await freePorts(2);
    const one = new Throttle(options(ports[0], [ports[1]], { secret: 'a secret of sixteen' }));
    const two = new Throttle(options(ports[1], [], { secret: 'another secret ...' }));
    for (const node of [one, two]) node.start();
    await until('a datagram under another key', () => {
      const { droppedKey, droppedAuth } = statsOf(two).counts;
      return droppedKey + droppedAuth > 0;
    });
    assert.deepEqual(statsOf(two).peers, []);
    for (const node of [one, two]) node.close();
  });
});

describe('the exchange', () => {
  it('the exchange starts with the first check or start() and ends with close()', async () => {
    const ports = await freePorts(3);
    const calls = ["allow('t')", "check('t')", "allowMany(['t'])", 'start()'];
    for (const call of calls) {
      const code = `
        const throttle = new Throttle(config);
        sleep(50);
        console.log(threads(), throttle.clusterStats().incarnation);
        throttle.${call};
        console.log(threadsUntil(1));
        throttle.start();
        sleep(50);
        console.log(threads());
        throttle.close();
        console.log(threadsUntil(0));
      `;
      assert.equal(program(code, options(ports[0], [])), `0 ${ZEROS}\n1\n1\n0`, call);
    }
  });

  it('the exchange of a busy throttle starts with the first request or start() and ends with close()', async () => {
    const ports = await freePorts(2);
    const { cluster } = options(ports[0], [ports[1]]);
    const peer = new BusyThrottle({ cluster: options(ports[1], [ports[0]]).cluster });
    peer.start();
    for (const call of ["shouldSend('a')", 'start()']) {
      const code = `
        const busy = new BusyThrottle(config);
        sleep(50);
        console.log(threads(), busy.limit('a'));
        busy.${call};
        console.log(threadsUntil(1));
        for (let i = 0; i < 6000 && busy.stats().peers === 0; i += 1) sleep(10);
        console.log(busy.stats().peers);
        busy.close();
        console.log(threadsUntil(0));
        busy.close();
      `;
      assert.equal(program(code, { cluster }), '0 Infinity\n1\n1\n0', call);
      await until('a goodbye', () => peer.stats().peers === 0);
    }
    peer.close();
  });

  it('a throttle with its own clock does not exchange', async () => {
    const [port] = await freePorts(1);
    const code = `
      const throttle = new Throttle({ ...config, clock: () => performance.now() });
      throttle.start();
      const allowed = throttle.allow('t');
      sleep(50);
      console.log(allowed, threads());
    `;
    assert.equal(program(code, options(port, [])), 'true 0');
  });

  it('the exchange keeps no process alive', async () => {
    const [port] = await freePorts(1);
    for (const end of ['', 'process.exit();', 'globalThis.kept = throttle;', 'setTimeout(() => {}, 50);']) {
      const code = `
        const throttle = new Throttle(config);
        throttle.start();
        console.log(throttle.allow('t'));
        ${end}
      `;
      assert.equal(program(code, options(port, [])), 'true', end);
    }
  });
});

describe('a node of another process', () => {
  it('a node of another process agrees on buckets and leaves', async (t) => {
    const ports = await freePorts(2);
    const code = `
      const { Throttle } = require(${JSON.stringify(INDEX)});
      const throttle = new Throttle(${JSON.stringify(options(ports[1], [ports[0]]))});
      const answers = {
        start: () => throttle.start(),
        stats: () => throttle.clusterStats(),
        allow: (tag) => throttle.allow(tag, 5),
        balance: (tag) => throttle.peek(tag).balance,
      };
      process.on('message', ({ name, tag }) => {
        if (name !== 'close') return process.send({ answer: answers[name](tag) });
        throttle.close();
        process.disconnect();
      });
    `;
    const child = spawn(process.execPath, ['-e', code], { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
    /**
     * @param {string} name
     * @param {string} [tag]
     */
    const ask = async (name, tag) => {
      const answer = once(child, 'message');
      child.send({ name, tag });
      return (await answer)[0].answer;
    };
    // A failing test must not keep its process alive.
    t.after(() => child.kill());
    const here = new Throttle(options(ports[0], [ports[1]]));
    here.start();
    await ask('start');
    await until('two nodes', async () => {
      const there = await ask('stats');
      return peersUp(here).length === 1 && there.peers.some((/** @type {any} */ { state }) => state === 'up');
    });
    const there = await ask('stats');
    assert.deepEqual([there.pid, there.peers[0].node], [child.pid, statsOf(here).node]);

    await agree(
      async (tag) => assert.deepEqual([here.allow(tag, 7), await ask('allow', tag)], [true, true]),
      async (tag) => (await ask('balance', tag)) === 988 && here.peek(tag).balance === 988,
    );

    const exit = once(child, 'exit');
    child.send({ name: 'close' });
    assert.deepEqual(await exit, [0, null]);
    await until('goodbye', () => here.events().some(({ kind }) => kind === 'peer_left'));
    here.close();
  });
});

describe('a thread', () => {
  it('a thread may end while its nodes exchange', async () => {
    const ports = await freePorts(2);
    const configs = ports.map((port, i) => options(port, [ports[1 - i]]));
    // Only these threads load the addon, so Node would unload it with the last one.
    const code = `
      const { once } = require('node:events');
      const { Worker } = require('node:worker_threads');
      const inside = (end) => 'const { Throttle } = require(' + ${JSON.stringify(JSON.stringify(INDEX))} + ');' +
        'globalThis.kept = ' + JSON.stringify(config) + '.map((options) => new Throttle(options));' +
        'for (const throttle of kept) throttle.start();' +
        'require("node:worker_threads").parentPort.postMessage("started");' + end;
      (async () => {
        for (let i = 0; i < 3; i += 1) {
          const quiet = new Worker(inside(''), { eval: true });
          console.log((await once(quiet, 'exit'))[0]);
          const busy = new Worker(inside('setImmediate(() => { for (;;) kept[0].allow("t"); });'), { eval: true });
          await once(busy, 'message');
          console.log(await busy.terminate());
        }
      })();
    `;
    const { status, signal, stdout, stderr } = spawnSync(
      process.execPath,
      ['-e', `const config = ${JSON.stringify(configs)}; ${code}`],
      { encoding: 'utf8', timeout: 120_000 },
    );
    assert.deepEqual([status, signal], [0, null], stderr);
    assert.equal(stdout, '0\n1\n'.repeat(3));
  });

  it('a thread has the node of its own throttle', async (t) => {
    const ports = await freePorts(2);
    const here = new Throttle(options(ports[0], [ports[1]]));
    here.start();
    const code = `
      const { parentPort, workerData } = require('node:worker_threads');
      const { Throttle } = require(workerData.index);
      const throttle = new Throttle(workerData.options);
      parentPort.on('message', (tag) => parentPort.postMessage(throttle.allow(tag, 100)));
      throttle.start();
    `;
    const workerData = { index: INDEX, options: options(ports[1], []) };
    const worker = new Worker(code, { eval: true, workerData });
    t.after(() => worker.terminate());
    await until('two nodes', () => peersUp(here).length === 1);
    await agree(
      async (tag) => {
        const answer = once(worker, 'message');
        worker.postMessage(tag);
        assert.deepEqual(await answer, [true]);
      },
      (tag) => here.peek(tag).balance === 900,
    );
    await worker.terminate();
    await until('goodbye', () => peersUp(here).length === 0);
    here.close();
  });
});
