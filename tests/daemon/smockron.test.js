// Smockron in JavaScript: an independent gatekeeper (npm's zeromq) with the daemon as master, and
// dthrottle's gatekeeper with the daemon and with an independent master.
'use strict';

const assert = require('node:assert/strict');
const { request } = require('node:http');
const { describe, it } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const express = require('express');
const { Publisher, Subscriber } = require('zeromq');

const { gatekeeper } = require('../../bindings-node/smockron/index.js');
const { LONG, DaemonMaster, IndependentMaster, waitUntil } = require('./masters.js');

/** An independent gatekeeper that follows the document. */
class IndependentGatekeeper {
  constructor(address) {
    const [host, port] = address.split(':');
    this.accounting = new Publisher({ linger: 0 });
    this.control = new Subscriber({ linger: 0, receiveTimeout: LONG });
    this.accounting.connect(`tcp://${host}:${port}`);
    this.control.connect(`tcp://${host}:${Number(port) + 1}`);
    this.control.subscribe('web\0');
    this.received = [];
    this.work = (async () => {
      try {
        for await (const frames of this.control) this.received.push(frames.map(String));
      } catch (error) {
        if (!this.control.closed) throw error;
      }
    })();
  }

  report(status, tag, now = Date.now()) {
    return this.accounting.send(['web\0', status, tag, String(now), status === 'DELAYED' ? String(now) : '']);
  }

  of(tag) {
    return this.received.filter((frames) => frames[2] === tag);
  }

  /** Waits until both sockets are connected, because PUB and SUB lose earlier messages. */
  async connected() {
    const tag = `connected-${Math.random()}`;
    await waitUntil(async () => {
      for (let i = 0; i < 11; i += 1) await this.report('ACCEPTED', tag);
      await sleep(20);
      return this.of(tag).length > 0;
    });
  }

  async end() {
    this.accounting.close();
    this.control.close();
    await this.work;
  }
}

/** Waits until the master has processed all earlier messages of a gatekeeper. */
async function waitUntilProcessed(keeper) {
  const tag = `settle-${Math.random()}`;
  for (let i = 0; i < 11; i += 1) await keeper.report('ACCEPTED', tag);
  await waitUntil(() => keeper.of(tag).length > 0);
}

describe('an independent gatekeeper with the daemon as master', { concurrency: true }, () => {
  it('receives a delay after the burst, and shares the limit with another gatekeeper', async (t) => {
    const master = await new DaemonMaster({ rate: 0.1, burst: 10 }).start();
    t.after(() => master.end());
    const [one, two] = [new IndependentGatekeeper(master.address), new IndependentGatekeeper(master.address)];
    t.after(() => Promise.all([one.end(), two.end()]));
    await Promise.all([one.connected(), two.connected()]);

    const first = Date.now();
    for (let i = 0; i < 10; i += 1) await one.report('ACCEPTED', 'alice', first);
    await one.report('REJECTED', 'alice');
    await waitUntilProcessed(one);
    assert.deepEqual(one.of('alice'), [], '10 requests are within the burst');
    await one.report('ACCEPTED', 'alice');
    await waitUntil(() => one.of('alice').length > 0 && two.of('alice').length > 0);
    const [topic, command, , time] = one.of('alice')[0];
    assert.deepEqual([topic, command], ['web\0', 'DELAY_UNTIL']);
    // The delay follows the clock of the master, which may read the first message late.
    assert.ok(Number(time) - first >= 10_000 && Number(time) - first <= 10_000 + LONG, `${time} after ${first}`);

    for (let i = 0; i < 5; i += 1) await Promise.all([one.report('ACCEPTED', 'both'), two.report('ACCEPTED', 'both')]);
    await waitUntilProcessed(one);
    await waitUntilProcessed(two);
    assert.deepEqual(one.of('both'), []);
    await two.report('ACCEPTED', 'both');
    await waitUntil(() => one.of('both').length === 1 && two.of('both').length === 1);
  });
});

/** Runs an Express application behind dthrottle's gatekeeper. Records when requests arrive. */
async function serve(t, address, options = {}) {
  const asked = [];
  const keeper = gatekeeper({
    master: address,
    domain: 'web',
    tag: (incoming) => {
      asked.push([incoming.headers['x-who'], Date.now()]);
      return incoming.headers['x-who'];
    },
    logInfo: (incoming) => incoming.headers['user-agent'],
    ...options,
  });
  const app = express();
  const times = [];
  app.use(keeper);
  app.get('/', (incoming, response) => {
    times.push([incoming.headers['x-who'], Date.now()]);
    response.send('hello');
  });
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => {
    keeper.close();
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${server.address().port}/`;
  const ask = async (tag) => {
    const answer = await fetch(url, { headers: { 'x-who': tag } });
    return { status: answer.status, retryAfter: answer.headers.get('Retry-After'), body: await answer.text() };
  };
  const connected = async () => {
    const before = keeper.master.received;
    await waitUntil(async () => {
      // Uses a new tag each time and does not wait for the responses, which may be delayed.
      const tag = `connected-${Math.random()}`;
      for (let i = 0; i < 6; i += 1) ask(tag).catch(() => {});
      await sleep(50);
      return keeper.master.received > before;
    });
  };
  return { keeper, asked, times, url, ask, connected };
}

for (const Master of [DaemonMaster, IndependentMaster]) {
  describe(`dthrottle's gatekeeper with ${Master.name}`, { concurrency: true }, () => {
    it('passes a burst, spaces further requests, and rejects those with too long a delay', async (t) => {
      const master = await new Master({ rate: 2, burst: 5 }).start();
      t.after(() => master.end());
      const { keeper, asked, times, ask, connected } = await serve(t, master.address, { maxDelayMs: 1800 });
      await connected();
      for (let tries = 0; ; tries += 1) {
        await waitUntil(async () => {
          // Sends requests one after another until the next would be delayed by 0.5 s.
          await ask('alice');
          await sleep(10);
          return keeper.until('alice') > Date.now() + 400;
        });
        times.length = 0;
        asked.length = 0;
        const start = Date.now();
        const first = keeper.until('alice');
        const answers = await Promise.all(Array.from({ length: 30 }, () => ask('alice')));
        // On a busy machine the requests may arrive too late to be delayed. Tries again.
        if (asked.some(([, at]) => at >= first) && tries < 10) continue;
        const passed = answers.filter(({ status }) => status === 200);
        const rejected = answers.filter(({ status }) => status === 503);
        assert.equal(passed.length + rejected.length, 30);
        assert.ok(passed.length > 1 && rejected.length > 0, `${passed.length} passed`);
        assert.ok(rejected.every(({ body, retryAfter }) => body === 'Rejected\n' && Number(retryAfter) >= 1));
        const turns = times.filter(([tag]) => tag === 'alice').map(([, time]) => time - start);
        assert.equal(turns.length, passed.length);
        // Requests may be late on a busy machine, but never early.
        turns.forEach((turn, i) => assert.ok(turn >= 500 * i - 5, `spaced: ${turns}`));
        assert.ok(keeper.counts.delayed >= passed.length && keeper.counts.rejected >= rejected.length);
        break;
      }
      assert.equal((await ask('bob')).status, 200, 'other clients are not delayed');
    });

    it('shares the limit with another gatekeeper', async (t) => {
      const master = await new Master({ rate: 0.1, burst: 5 }).start();
      t.after(() => master.end());
      const [one, two] = await Promise.all([0, 1].map(() => serve(t, master.address, { maxDelayMs: 0 })));
      await Promise.all([one.connected(), two.connected()]);
      for (const { ask } of [one, two, one, two, one, two]) assert.equal((await ask('both')).status, 200);
      await waitUntil(async () => (await one.ask('both')).status === 503);
      await waitUntil(async () => (await two.ask('both')).status === 503);
    });

    it('passes everything without a master, and reconnects to it', async (t) => {
      const master = await new Master({ rate: 0.1, burst: 5 }).start();
      t.after(() => master.end());
      const { keeper, ask, connected } = await serve(t, master.address, { maxDelayMs: 60_000 });
      await connected();
      await master.kill();
      const answers = await Promise.all(Array.from({ length: 100 }, () => ask('gone')));
      assert.ok(answers.every(({ status }) => status === 200));
      assert.equal(keeper.counts.rejected, 0);
      await master.restart();
      await connected();
    });
  });
}

describe("dthrottle's gatekeeper", { concurrency: true }, () => {
  it('passes everything if there is no master', async (t) => {
    const { keeper, ask } = await serve(t, '127.0.0.1:9');
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask('x')));
    assert.ok(answers.every(({ status }) => status === 200));
    assert.equal(keeper.counts.accepted, 100);
  });

  it('sends the frames of the document', async (t) => {
    const master = await new IndependentMaster({ rate: 2, burst: 2 }).start();
    t.after(() => master.end());
    const { ask, connected } = await serve(t, master.address, { maxDelayMs: 700 });
    await connected();
    const seen = () => master.messages.filter((frames) => frames[2] === 'frames');
    const statuses = () => new Set(seen().map((frames) => frames[1]));
    await waitUntil(async () => {
      await Promise.all(Array.from({ length: 3 }, () => ask('frames')));
      return statuses().size === 3;
    });
    for (const [topic, status, , received, delayed, info] of seen()) {
      assert.equal(topic, 'web\0');
      assert.match(received, /^\d{13}$/);
      if (status === 'DELAYED') assert.ok(Number(delayed) > Number(received));
      else assert.equal(delayed, '');
      assert.match(info, /node|undici/i);
    }
    assert.deepEqual([...statuses()].sort(), ['ACCEPTED', 'DELAYED', 'REJECTED']);
  });

  it('reports a share of the rejections to the master', async (t) => {
    const master = await new IndependentMaster({ rate: 0.001, burst: 1 }).start();
    t.after(() => master.end());
    const sample = async (share) => {
      const { ask, connected } = await serve(t, master.address, { maxDelayMs: 0, tellRejected: share });
      await connected();
      const tag = `share-${share}`;
      await waitUntil(async () => (await ask(tag)).status === 503);
      const answers = await Promise.all(Array.from({ length: 400 }, () => ask(tag)));
      assert.ok(answers.every(({ status }) => status === 503));
      // Messages of one gatekeeper arrive in order.
      await ask(`${tag}-last`);
      await waitUntil(() => master.messages.some((frames) => frames[2] === `${tag}-last`));
      return master.messages.filter((frames) => frames[1] === 'REJECTED' && frames[2] === tag).length;
    };
    assert.equal(await sample(0), 0);
    assert.equal(await sample(1), 401);
    assert.equal(await sample(true), 401);
    const half = await sample(0.5);
    // 401 draws miss this by chance once in 10^21 runs.
    assert.ok(half > 100 && half < 301, `${half} of 401`);
  });

  it('handles clients that leave, and ignores invalid messages of a master', async (t) => {
    const master = await new IndependentMaster({ rate: 0.01, burst: 1 }).start();
    t.after(() => master.end());
    const { keeper, asked, url, ask, connected } = await serve(t, master.address, { maxDelayMs: 3_600_000 });
    await connected();
    const { bad } = keeper.master;
    await ask('leaves');
    await ask('leaves');
    await waitUntil(() => keeper.until('leaves') > 0);
    const { gaveUp } = keeper.counts;
    const leaving = request(url, { headers: { 'x-who': 'leaves' } }).on('error', () => {});
    leaving.end();
    await waitUntil(() => asked.filter(([tag]) => tag === 'leaves').length === 3);
    leaving.destroy();
    await waitUntil(() => keeper.counts.gaveUp === gaveUp + 1);
    for (const frames of [['web\0'], ['web\0', 'DELAY_UNTIL', 'x'], ['web\0', 'DELAY_UNTIL', 'x', 'soon'], ['web\0', 'STOP', 'x', '1']]) {
      await master.control.send(frames);
    }
    await waitUntil(() => keeper.master.bad === bad + 4);
    assert.equal((await ask('x')).status, 200);
  });
});
