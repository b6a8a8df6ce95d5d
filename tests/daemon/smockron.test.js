// Smockron in JavaScript: a gatekeeper written plainly with npm's zeromq and our master; our
// gatekeeper and masters of either make.
'use strict';

const assert = require('node:assert/strict');
const { request } = require('node:http');
const { describe, it } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const express = require('express');
const { Publisher, Subscriber } = require('zeromq');

const { gatekeeper } = require('../../bindings-node/smockron/index.js');
const { LONG, OurMaster, PlainMaster, until } = require('./masters.js');

/** A gatekeeper as the document describes it. */
class Plain {
  constructor(place) {
    const [host, port] = place.split(':');
    this.accounting = new Publisher({ linger: 0 });
    this.control = new Subscriber({ linger: 0, receiveTimeout: LONG });
    this.accounting.connect(`tcp://${host}:${port}`);
    this.control.connect(`tcp://${host}:${Number(port) + 1}`);
    this.control.subscribe('web\0');
    this.heard = [];
    this.work = (async () => {
      try {
        for await (const frames of this.control) this.heard.push(frames.map(String));
      } catch (error) {
        if (!this.control.closed) throw error;
      }
    })();
  }

  tell(status, who, now = Date.now()) {
    return this.accounting.send(['web\0', status, who, String(now), status === 'DELAYED' ? String(now) : '']);
  }

  of(who) {
    return this.heard.filter((frames) => frames[2] === who);
  }

  /** PUB and SUB lose what comes before both are connected. */
  async meet() {
    const who = `meet-${Math.random()}`;
    await until(async () => {
      for (let i = 0; i < 11; i += 1) await this.tell('ACCEPTED', who);
      await sleep(20);
      return this.of(who).length > 0;
    });
  }

  async end() {
    this.accounting.close();
    this.control.close();
    await this.work;
  }
}

/** Everything that was told before this has been heard: the answer comes behind it. */
async function settle(keeper) {
  const who = `settle-${Math.random()}`;
  for (let i = 0; i < 11; i += 1) await keeper.tell('ACCEPTED', who);
  await until(() => keeper.of(who).length > 0);
}

describe("a plain gatekeeper of npm's zeromq, and our master", { concurrency: true }, () => {
  it('hears of the eleventh, and shares the limit with another', async (t) => {
    const master = await new OurMaster({ rate: 0.1, burst: 10 }).start();
    t.after(() => master.end());
    const [one, two] = [new Plain(master.place), new Plain(master.place)];
    t.after(() => Promise.all([one.end(), two.end()]));
    await Promise.all([one.meet(), two.meet()]);

    const first = Date.now();
    for (let i = 0; i < 10; i += 1) await one.tell('ACCEPTED', 'alice', first);
    await one.tell('REJECTED', 'alice');
    await settle(one);
    assert.deepEqual(one.of('alice'), [], 'one to ten are silent');
    await one.tell('ACCEPTED', 'alice');
    await until(() => one.of('alice').length > 0 && two.of('alice').length > 0);
    const [topic, command, , time] = one.of('alice')[0];
    assert.deepEqual([topic, command], ['web\0', 'DELAY_UNTIL']);
    // The master's clock counts, which may look at the first message late.
    assert.ok(Number(time) - first >= 10_000 && Number(time) - first <= 10_000 + LONG, `${time} after ${first}`);

    for (let i = 0; i < 5; i += 1) await Promise.all([one.tell('ACCEPTED', 'both'), two.tell('ACCEPTED', 'both')]);
    await settle(one);
    await settle(two);
    assert.deepEqual(one.of('both'), []);
    await two.tell('ACCEPTED', 'both');
    await until(() => one.of('both').length === 1 && two.of('both').length === 1);
  });
});

/** An application of Express behind our gatekeeper; notes when each request reaches it. */
async function serve(t, place, options = {}) {
  const asked = [];
  const keeper = gatekeeper({
    master: place,
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
  const ask = async (who) => {
    const answer = await fetch(url, { headers: { 'x-who': who } });
    return { status: answer.status, retryAfter: answer.headers.get('Retry-After'), body: await answer.text() };
  };
  const meet = async () => {
    const before = keeper.master.received;
    await until(async () => {
      // Somebody new each time, whom nobody waits for: the last of them may be held.
      const who = `meet-${Math.random()}`;
      for (let i = 0; i < 6; i += 1) ask(who).catch(() => {});
      await sleep(50);
      return keeper.master.received > before;
    });
  };
  return { keeper, asked, times, url, ask, meet };
}

for (const Master of [OurMaster, PlainMaster]) {
  describe(`our gatekeeper, and ${Master.name}`, { concurrency: true }, () => {
    it('lets a burst through, spaces what follows, and rejects what would wait too long', async (t) => {
      const master = await new Master({ rate: 2, burst: 5 }).start();
      t.after(() => master.end());
      const { keeper, asked, times, ask, meet } = await serve(t, master.place, { maxDelayMs: 1800 });
      await meet();
      for (let tries = 0; ; tries += 1) {
        await until(async () => {
          // One after the other: each waits for its turn, so the next is half a second away.
          await ask('alice');
          await sleep(10);
          return keeper.until('alice') > Date.now() + 400;
        });
        times.length = 0;
        asked.length = 0;
        const start = Date.now();
        const first = keeper.until('alice');
        const answers = await Promise.all(Array.from({ length: 30 }, () => ask('alice')));
        // On a machine that does much else they came too late to be held: once more.
        if (asked.some(([, at]) => at >= first) && tries < 10) continue;
        const passed = answers.filter(({ status }) => status === 200);
        const rejected = answers.filter(({ status }) => status === 503);
        assert.equal(passed.length + rejected.length, 30);
        assert.ok(passed.length > 1 && rejected.length > 0, `${passed.length} passed`);
        assert.ok(rejected.every(({ body, retryAfter }) => body === 'Rejected\n' && Number(retryAfter) >= 1));
        const turns = times.filter(([who]) => who === 'alice').map(([, time]) => time - start);
        assert.equal(turns.length, passed.length);
        // A machine that does much else may be late, but never early.
        turns.forEach((turn, i) => assert.ok(turn >= 500 * i - 5, `spaced: ${turns}`));
        assert.ok(keeper.counts.delayed >= passed.length && keeper.counts.rejected >= rejected.length);
        break;
      }
      assert.equal((await ask('bob')).status, 200, 'others are not held');
    });

    it('shares the limit with another gatekeeper', async (t) => {
      const master = await new Master({ rate: 0.1, burst: 5 }).start();
      t.after(() => master.end());
      const [one, two] = await Promise.all([0, 1].map(() => serve(t, master.place, { maxDelayMs: 0 })));
      await Promise.all([one.meet(), two.meet()]);
      for (const { ask } of [one, two, one, two, one, two]) assert.equal((await ask('both')).status, 200);
      await until(async () => (await one.ask('both')).status === 503);
      await until(async () => (await two.ask('both')).status === 503);
    });

    it('lets everything through without a master, and comes back to it', async (t) => {
      const master = await new Master({ rate: 0.1, burst: 5 }).start();
      t.after(() => master.end());
      const { keeper, ask, meet } = await serve(t, master.place, { maxDelayMs: 60_000 });
      await meet();
      await master.kill();
      const answers = await Promise.all(Array.from({ length: 100 }, () => ask('gone')));
      assert.ok(answers.every(({ status }) => status === 200));
      assert.equal(keeper.counts.rejected, 0);
      await master.restart();
      await meet();
    });
  });
}

describe('our gatekeeper alone', { concurrency: true }, () => {
  it('passes everything when nobody was ever there', async (t) => {
    const { keeper, ask } = await serve(t, '127.0.0.1:9');
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask('x')));
    assert.ok(answers.every(({ status }) => status === 200));
    assert.equal(keeper.counts.accepted, 100);
  });

  it('says what the document asks for', async (t) => {
    const master = await new PlainMaster({ rate: 2, burst: 2 }).start();
    t.after(() => master.end());
    const { ask, meet } = await serve(t, master.place, { maxDelayMs: 700 });
    await meet();
    const seen = () => master.messages.filter((frames) => frames[2] === 'frames');
    const statuses = () => new Set(seen().map((frames) => frames[1]));
    await until(async () => {
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

  it('tells the master of a share of the rejections', async (t) => {
    const master = await new PlainMaster({ rate: 0.001, burst: 1 }).start();
    t.after(() => master.end());
    const sample = async (share) => {
      const { ask, meet } = await serve(t, master.place, { maxDelayMs: 0, tellRejected: share });
      await meet();
      const who = `share-${share}`;
      await until(async () => (await ask(who)).status === 503);
      const answers = await Promise.all(Array.from({ length: 400 }, () => ask(who)));
      assert.ok(answers.every(({ status }) => status === 503));
      // Messages of one gatekeeper arrive in order.
      await ask(`${who}-last`);
      await until(() => master.messages.some((frames) => frames[2] === `${who}-last`));
      return master.messages.filter((frames) => frames[1] === 'REJECTED' && frames[2] === who).length;
    };
    assert.equal(await sample(0), 0);
    assert.equal(await sample(1), 401);
    assert.equal(await sample(true), 401);
    const half = await sample(0.5);
    // 401 draws miss this by chance once in 10^21 runs.
    assert.ok(half > 100 && half < 301, `${half} of 401`);
  });

  it('forgets a client that goes away, and ignores nonsense of a master', async (t) => {
    const master = await new PlainMaster({ rate: 0.01, burst: 1 }).start();
    t.after(() => master.end());
    const { keeper, asked, url, ask, meet } = await serve(t, master.place, { maxDelayMs: 3_600_000 });
    await meet();
    const { bad } = keeper.master;
    await ask('leaves');
    await ask('leaves');
    await until(() => keeper.until('leaves') > 0);
    const { gaveUp } = keeper.counts;
    const leaving = request(url, { headers: { 'x-who': 'leaves' } }).on('error', () => {});
    leaving.end();
    await until(() => asked.filter(([who]) => who === 'leaves').length === 3);
    leaving.destroy();
    await until(() => keeper.counts.gaveUp === gaveUp + 1);
    for (const frames of [['web\0'], ['web\0', 'DELAY_UNTIL', 'x'], ['web\0', 'DELAY_UNTIL', 'x', 'soon'], ['web\0', 'STOP', 'x', '1']]) {
      await master.control.send(frames);
    }
    await until(() => keeper.master.bad === bad + 4);
    assert.equal((await ask('x')).status, 200);
  });
});
