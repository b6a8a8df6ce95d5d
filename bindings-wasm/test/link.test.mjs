// Tests of links: nodes in WebAssembly whose datagrams the host carries, in memory and over a real socket.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import native from '../../bindings-node/index.js';
import vectors from '../../bindings-node/test/shared/vectors.js';
import builds from './builds.js';
import network from './net.js';

const { Net, numbersFrom } = network;
const web = await builds.loadWeb();
const dthrottle = builds.node;

const kinds = (events) => events.map(({ kind }) => kind);
const peersUp = ({ throttle }) => throttle.clusterStats().peers.filter(({ state }) => state === 'up');

/** A network of nodes that know each other, alternately of both builds. */
function netOf(count, change) {
  const net = new Net(7);
  change?.(net);
  for (let i = 0; i < count; i += 1) net.start(i % 2 === 0 ? dthrottle : web);
  net.run(5000);
  for (const node of net.nodes) assert.equal(peersUp(node).length, count - 1);
  return net;
}

const balances = (net, tag) => net.nodes.map(({ throttle }) => throttle.peek(tag).balance);
const sum = (net, name) =>
  net.nodes.reduce((all, { throttle }) => all + throttle.clusterStats().counts[name], 0);

describe('busy throttles with links', () => {
  it('linked busy throttles slow down after a busy response of a peer, unless they opt out', () => {
    const net = new Net(5);
    for (const build of [dthrottle, web, dthrottle]) net.startBusy(build);
    net.startBusy(web, { busy: false });
    net.run(5000);
    const [one, two, three, off] = net.nodes.map(({ throttle }) => throttle);
    assert.deepEqual([one, two, off].map((busy) => busy.stats().peers), [3, 3, 3]);
    for (const busy of [one, two, three, off]) assert.ok(busy.shouldSend('api'));
    one.onBusy('api', 30_000);
    net.run(200);
    assert.deepEqual([two, three].map((busy) => busy.turn('api').allowed), [false, false]);
    const { waitMs } = two.turn('api');
    assert.ok(waitMs > 29_700 && waitMs < 29_900, `${waitMs}`);
    assert.equal(off.limit('api'), Infinity);
    assert.deepEqual([two, one, off].map((busy) => busy.stats().remoteBusy), [1, 0, 0]);
  });

  it('a closed busy throttle cannot have a link', () => {
    const busy = new dthrottle.BusyThrottle({ cluster: { name: 'test' } });
    busy.close();
    assert.throws(() => busy.link({ address: '10.0.0.1:1' }), { code: 'DTHROTTLE_CLOSED' });
  });

  it('a busy throttle without a cluster cannot have a link', () => {
    assert.throws(
      () => new dthrottle.BusyThrottle().link({ address: '10.0.0.1:1' }),
      { code: 'DTHROTTLE_ARGUMENT', message: /the option cluster/ },
    );
  });
});

describe('nodes with links', () => {
  it('linked nodes agree on a balance despite lost and duplicate datagrams', () => {
    const net = netOf(4, (one) => Object.assign(one, { loss: 0.1, twice: 0.25 }));
    const random = numbersFrom(3);
    let used = 0;
    for (let i = 0; i < 100; i += 1) {
      const cost = 1 + Math.floor(random() * 5);
      const node = net.nodes[Math.floor(random() * 4)];
      assert.equal(node.throttle.allow('tag', cost), true);
      used += cost;
      net.run(random() * 20);
    }
    net.run(5000);
    assert.deepEqual(balances(net, 'tag'), new Array(4).fill(1000 - used));
    // Datagrams were lost and duplicated, but:
    assert.ok(sum(net, 'reportsRepaired') > 10);
    assert.ok(sum(net, 'droppedReplay') > 10);
    assert.equal(sum(net, 'reportsLost'), 0);
    assert.equal(sum(net, 'entriesLate'), 0, 'a report that is repaired too late must not be charged');
    assert.equal(sum(net, 'droppedMalformed') + sum(net, 'droppedAuth'), 0);
  });

  it('linked nodes do not agree if no datagrams are carried', () => {
    const net = netOf(2);
    net.loss = 1;
    assert.equal(net.nodes[0].throttle.allow('tag'), true);
    net.run(1000);
    assert.deepEqual(balances(net, 'tag'), [999, 1000]);
  });

  it('a linked node starts with the buckets of its peers', () => {
    const net = netOf(2);
    assert.equal(net.nodes[0].throttle.allow('tag', 800), true);
    net.run(1000);
    const late = net.start(dthrottle);
    net.run(3000);
    assert.equal(late.throttle.peek('tag').balance, 200);
    assert.ok(kinds(late.events).includes('warm_start'));
  });

  it('poll() returns the same events as the throttle', () => {
    const net = netOf(3);
    for (const { throttle, events } of net.nodes) {
      const plain = (list) => list.map(({ number, kind, node, value }) => ({ number, kind, node, value }));
      assert.deepEqual(plain(events), plain(throttle.events()));
      assert.equal(kinds(events).filter((kind) => kind === 'peer_up').length, 2);
    }
    const [{ throttle }, other] = net.nodes;
    const { node, incarnation, pid, peers } = throttle.clusterStats();
    assert.match(node, /^[0-9a-f]{16}$/);
    assert.equal(incarnation, '0000000000000001');
    assert.equal(pid, 0);
    assert.ok(peers.some((peer) => peer.address === other.address && peer.ageMs < 5000));
  });

  it('leave() sends unreported units and a goodbye', () => {
    const net = netOf(2);
    const [one, two] = net.nodes;
    assert.equal(two.throttle.allow('tag', 5), true);
    two.link.leave();
    net.settle(two);
    assert.deepEqual(two.link.poll(), { timeoutMs: Infinity });
    net.run(1000);
    assert.equal(one.throttle.peek('tag').balance, 995);
    assert.deepEqual(one.throttle.clusterStats().peers.map(({ state }) => state), ['left']);
    assert.equal(one.throttle.allow('tag', 5), true);
    net.run(1000);
    assert.equal(two.throttle.peek('tag').balance, 995, 'a node that left must receive no reports');
  });

  it('only the newest link of a throttle works', () => {
    const net = netOf(2);
    const [one, two] = net.nodes;
    const { link: old } = two;
    const before = two.throttle.clusterStats();
    assert.equal(one.throttle.allow('tag', 3), true);
    net.run(1000);
    net.link(two, { seed: 77n, incarnation: 2n });
    const after = two.throttle.clusterStats();
    assert.equal(after.node, before.node);
    assert.ok(after.incarnation > before.incarnation);
    for (const call of [() => old.timeout(), () => old.join([one.address]), () => old.leave()]) {
      call();
      assert.deepEqual(old.poll(), { timeoutMs: Infinity });
    }
    net.run(3000);
    assert.equal(two.throttle.allow('tag', 4), true);
    net.run(3000);
    assert.deepEqual(balances(net, 'tag'), [993, 993], 'no unit may be charged twice');
    const incarnation = BigInt(`0x${after.incarnation}`);
    const { address } = two;
    assert.throws(() => two.throttle.link({ address, incarnation }), vectors.failsWith(two.dthrottle, 'argument'));
    two.throttle.link({ address });
    assert.ok(BigInt(`0x${two.throttle.clusterStats().incarnation}`) > BigInt(Date.now() - 86_400_000) << 20n);
  });

  it('a node with multicast sends to the group', () => {
    const cluster = { name: 'test', secret: 'sixteen bytes or more', multicast: '239.73.73.73:7373' };
    const throttle = new dthrottle.Throttle({ rate: 1, cluster });
    const link = throttle.link({ address: '10.0.0.1:7373' });
    link.join([]);
    const { to, datagram } = link.poll();
    assert.equal(to, 'group');
    assert.ok(datagram instanceof Uint8Array && datagram.length > 0);
  });

  it('unreported units are counted', () => {
    const clock = new dthrottle.ManualClock(1000);
    const throttle = new dthrottle.Throttle({ rate: '1/s', cluster: { name: 'test' }, clock });
    throttle.link({ address: '127.0.0.1:7373' });
    for (let i = 0; i < 400_000; i += 1) throttle.allow(`tag ${i}`);
    const { evicted, unreported } = throttle.stats();
    assert.ok(evicted > 0 && unreported === evicted);
  });
});

for (const [label, { DthrottleError, ManualClock, Throttle }] of Object.entries({ node: dthrottle, web })) {
  describe(`a link, ${label}`, () => {
    const fails = vectors.failsWith({ DthrottleError }, 'argument');
    const address = '10.0.0.1:7373';
    const open = () =>
      new Throttle({ rate: 1, cluster: { name: 'test' }, clock: new ManualClock(1000) });

    it('wrong arguments of a link are errors', () => {
      const throttle = open();
      const bad = ['', '10.0.0.1', 'localhost:7373', '10.0.0.1:0', '0.0.0.0:7373', 'fd00::1:7373', `x${'y'.repeat(999)}`];
      for (const wrong of [...bad, undefined, null, 5, {}]) {
        assert.throws(() => throttle.link({ address: wrong }), fails);
      }
      for (const seed of [5, '5', null, -1n, 1n << 64n, new Uint8Array(7), new Uint8Array(9)]) {
        assert.throws(() => throttle.link({ address, seed }), fails);
      }
      for (const incarnation of [0n, 5, null, -1n, 1n << 64n]) {
        assert.throws(() => throttle.link({ address, incarnation }), fails);
      }
      for (const options of [null, 5, { address, seeds: 5n }]) {
        assert.throws(() => throttle.link(options), fails);
      }
      assert.throws(() => new Throttle('1/s').link({ address }), fails);
      assert.throws(() => Throttle.prototype.link.call({}, { address }), TypeError);
      const link = throttle.link({ address });
      for (const from of [...bad, undefined, 5]) assert.throws(() => link.receive(from, new Uint8Array(3)), fails);
      for (const datagram of [undefined, null, 'x', [1], new Uint16Array(3), new ArrayBuffer(3)]) {
        assert.throws(() => link.receive(address, datagram), fails);
      }
      for (const addresses of [...bad.map((one) => [one]), undefined, address, [5], {}]) {
        assert.throws(() => link.join(addresses), fails);
      }
      assert.equal(throttle.clusterStats().counts.datagramsReceived, 0);
      throttle.close();
      assert.throws(() => throttle.link({ address }), vectors.failsWith({ DthrottleError }, 'closed'));
    });

    it('invalid datagrams are counted', () => {
      const throttle = open();
      const link = throttle.link({ address: '[fd00::1]:7373' });
      for (const datagram of [[], [1, 2, 3], new Array(5000).fill(7), new Array(200).fill(0)]) {
        link.receive('[::ffff:10.0.0.2]:7373', Uint8Array.from(datagram));
      }
      const { counts } = throttle.clusterStats();
      assert.equal(counts.datagramsReceived, 4);
      assert.equal(counts.droppedShort + counts.droppedLong + counts.droppedMagic, 4);
      assert.ok(link.poll().timeoutMs <= 10);
    });

    it('links with the same seed send the same datagrams', () => {
      const first = (seed) => {
        const link = open().link({ address, seed, incarnation: 5n });
        link.join(['10.0.0.2:7373', '[fd00::2]:7373']);
        const [one, two] = [link.poll(), link.poll()];
        assert.deepEqual([one.to, two.to], [['10.0.0.2:7373'], ['[fd00::2]:7373']]);
        return Buffer.from(one.datagram).toString('hex');
      };
      assert.equal(first(5n), first(5n));
      assert.equal(first(258n), first(Uint8Array.of(0, 0, 0, 0, 0, 0, 1, 2)));
      assert.notEqual(first(5n), first(6n));
      assert.notEqual(first(undefined), first(undefined));
    });

    it('a link uses the clock of its throttle', () => {
      let now = 1000;
      const throttle = new Throttle({ rate: 1, cluster: { name: 'test' }, clock: () => now });
      const link = throttle.link({ address, seed: 1n });
      const { timeoutMs } = link.poll();
      assert.ok(timeoutMs > 0 && timeoutMs <= 10);
      now += timeoutMs / 2;
      // Times are rounded up to a microsecond.
      assert.ok(Math.abs(link.poll().timeoutMs - timeoutMs / 2) < 0.002);
      now += timeoutMs;
      assert.equal(link.poll().timeoutMs, 0);
      link.timeout();
      assert.ok(link.poll().timeoutMs > 0);
    });
  });
}

/** Carries a link's datagrams over a socket. Returns a function that ends this. */
function carry(link, socket) {
  let timer;
  function settle() {
    for (;;) {
      const { to, datagram, timeoutMs } = link.poll();
      if (to) {
        for (const address of to) {
          const [host, port] = address.split(':');
          socket.send(datagram, Number(port), host);
        }
      } else if (timeoutMs !== undefined) {
        clearTimeout(timer);
        if (Number.isFinite(timeoutMs)) timer = setTimeout(act, timeoutMs);
        return;
      }
    }
  }
  function act() {
    link.timeout();
    settle();
  }
  socket.on('message', (datagram, { address, port }) => {
    link.receive(`${address}:${port}`, datagram);
    settle();
  });
  settle();
  return () => {
    link.leave();
    settle();
  };
}

/** Waits for a condition. The test does not depend on the time. */
async function until(what, done) {
  for (let i = 0; i < 6000; i += 1) {
    if (done()) return;
    await sleep(10);
  }
  assert.fail(`condition not met within 60 s: ${what}`);
}

describe('a link over a socket', () => {
  it('a link over a socket exchanges with native nodes', async (t) => {
    const sockets = [createSocket('udp4'), createSocket('udp4')];
    for (const socket of sockets) await once(socket.bind(0, '127.0.0.1'), 'listening');
    const [ours, free] = sockets.map((socket) => `127.0.0.1:${socket.address().port}`);
    sockets[1].close();

    const common = { rate: '1 per 100 years', burst: 1000 };
    const cluster = { name: 'mixed', secret: 'sixteen bytes or more' };
    const there = new native.Throttle({ ...common, cluster: { ...cluster, listen: free } });
    there.start();
    const here = new dthrottle.Throttle({ ...common, cluster });
    const link = here.link({ address: ours });
    link.join([free]);
    const leave = carry(link, sockets[0]);
    // A failing test must not keep its process alive.
    t.after(() => {
      leave();
      sockets[0].close();
    });
    const nodes = [{ throttle: here }, { throttle: there }];
    await until('two nodes', () => nodes.every((node) => peersUp(node).length === 1));
    assert.equal(peersUp(nodes[1])[0].address, ours);
    assert.equal(peersUp(nodes[0])[0].node, there.clusterStats().node);

    // A node accepts no reports while it starts, and late reports are not charged on a busy machine.
    let tag;
    let looks = 0;
    await until('agreement', () => {
      if (looks % 100 === 0) {
        tag = `tag ${looks}`;
        assert.equal(here.allow(tag, 30), true);
        for (let i = 0; i < 12; i += 1) assert.equal(there.allow(tag), true);
      }
      looks += 1;
      return nodes.every(({ throttle }) => throttle.peek(tag).balance === 958);
    });
    assert.ok(!kinds([...here.events(), ...there.events()]).includes('rules_differ'));
    const { counts } = here.clusterStats();
    assert.equal(counts.droppedAuth + counts.droppedMalformed + counts.droppedKey, 0);

    leave();
    await until('goodbye', () => kinds(there.events()).includes('peer_left'));
    there.close();
  });
});
