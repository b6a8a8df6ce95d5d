// Tests that a charge on one node reaches its peers: by charge(), and by requests that cost more than the burst.
'use strict';

const assert = require('node:assert/strict');
const { createSocket } = require('node:dgram');
const { once } = require('node:events');
const { after, before, describe, it } = require('node:test');
const { setTimeout } = require('node:timers/promises');

const { Throttle } = require('../index.js');
const { start } = require('./shared/web.js');

const BURST = 10;
const HOUR_MS = 3_600_000;

/** @type {Throttle[]} Two nodes. A unit takes an hour, so that no test has to be quick. */
let nodes = [];

/** @param {() => unknown} done */
async function until(done) {
  for (let i = 0; i < 6000; i += 1) {
    if (done()) return;
    await setTimeout(10);
  }
  assert.fail('never');
}

before(async () => {
  const sockets = [createSocket('udp4'), createSocket('udp4')];
  for (const socket of sockets) await once(socket.bind(0, '127.0.0.1'), 'listening');
  const peers = sockets.map((socket) => `127.0.0.1:${socket.address().port}`);
  for (const socket of sockets) socket.close();
  nodes = peers.map((listen) => new Throttle({ rate: '1/hour', burst: BURST, cluster: { name: 'charge', listen, peers } }));
  for (const node of nodes) node.start();
  await until(() => nodes.every((node) => node.clusterStats()?.peers[0]?.state === 'up'));
});
after(() => {
  for (const node of nodes) node.close();
});

/**
 * Tries tags until the peer has the expected balance for one. The peer accepts no reports while it starts, and has
 * another balance if a report arrived during the use of a tag.
 * @param {string} name
 * @param {number} balance
 * @param {(tag: string) => unknown} use
 */
async function useUntilCounted(name, balance, use) {
  for (let i = 0; i < 60; i += 1) {
    const tag = `${name} ${i}`;
    await use(tag);
    for (let look = 0; look < 100; look += 1) {
      if (nodes[1].peek(tag).balance === balance) return tag;
      await setTimeout(10);
    }
  }
  return assert.fail(`never ${balance}`);
}

describe('peers', () => {
  /** @type {['charge' | 'chargeLocal', number][]} */
  const calls = [
    ['charge', 6],
    ['chargeLocal', 1],
  ];
  for (const [call, used] of calls) {
    it(`a peer receives ${used} units after ${call}()`, async () => {
      const tag = await useUntilCounted(call, BURST - used, (one) => {
        nodes[0][call](one, 30);
        nodes[0].refund(one, 25);
        nodes[0].allow(one);
      });
      assert.equal(nodes[0].peek(tag).balance, BURST - 6);
    });
  }

  it('a peer refuses a tag as long as the node on which it exceeded the burst', async () => {
    const given = { keyGenerator: (/** @type {any} */ request) => request.headers['x-user'] };
    const cost = (/** @type {any} */ request) => Number(request.headers['x-cost']);
    const webs = await Promise.all(nodes.map((node) => start('Express 5', node, { ...given, cost })));
    const ask = (/** @type {number} */ at, /** @type {string} */ user, /** @type {number} */ units) =>
      webs[at].get('/', { headers: { 'X-User': user, 'X-Cost': units } });
    try {
      const user = await useUntilCounted('request', -2 * BURST, async (one) => assert.equal((await ask(0, one, 3 * BURST)).status, 200));
      for (const at of [0, 1]) {
        const { status, headers } = await ask(at, user, 1);
        const off = Number(headers['retry-after']) * 1000 - 21 * HOUR_MS;
        assert.deepEqual([status, Math.abs(off) < 120_000], [429, true], `node ${at}: ${off} ms`);
      }
    } finally {
      for (const web of webs) web.close();
    }
  });
});
