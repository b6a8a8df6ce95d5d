// A network in memory for links, in virtual time. It loses, duplicates and delays datagrams by a seeded generator, so
// that every run is the same.
'use strict';

/** The smallest delay of a datagram in milliseconds, and how much longer it may be. */
const DELAY = 1;
const JITTER = 20;

/**
 * Random numbers from 0 to 1, which are the same for the same seed.
 * @param {number} seed
 */
function numbersFrom(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

class Net {
  nodes = [];
  /** A Unix time, because a clock may count from any epoch. */
  now = 1_760_000_000_000;
  /** The shares of lost and of duplicated datagrams. */
  loss = 0;
  twice = 0;
  #underWay = [];
  #random;

  /** @param {number} seed */
  constructor(seed) {
    this.#random = numbersFrom(seed);
  }

  /**
   * Starts a node that knows the existing nodes, and returns it.
   * @param {any} dthrottle
   * @param {object} [options] Options of the throttle.
   */
  start(dthrottle, options) {
    const clock = new dthrottle.ManualClock(this.now);
    const cluster = { name: 'test', secret: 'sixteen bytes or more' };
    const defaults = { rate: '1 per 100 years', burst: 1000, cluster, clock };
    return this.#add(dthrottle, clock, new dthrottle.Throttle({ ...defaults, ...options }));
  }

  /**
   * Starts a node with a busy throttle.
   * @param {any} dthrottle
   * @param {object} [options] Further options of its cluster.
   */
  startBusy(dthrottle, options) {
    const clock = new dthrottle.ManualClock(this.now);
    const cluster = { name: 'test', secret: 'sixteen bytes or more', ...options };
    return this.#add(dthrottle, clock, new dthrottle.BusyThrottle({ cluster, clock }));
  }

  #add(dthrottle, clock, throttle) {
    const address = `10.0.0.${this.nodes.length + 1}:7373`;
    const node = { dthrottle, throttle, clock, address, link: undefined, due: 0, events: [] };
    this.nodes.push(node);
    this.link(node, { seed: BigInt(this.nodes.length), incarnation: 1n });
    return node;
  }

  /** Links a node, also for a second time. */
  link(node, options) {
    node.link = node.throttle.link({ address: node.address, ...options });
    node.link.join(this.nodes.map(({ address }) => address).filter((address) => address !== node.address));
    this.settle(node);
  }

  /** Handles the outputs of a link. */
  settle(node) {
    for (;;) {
      const { to, datagram, event, timeoutMs } = node.link.poll();
      if (timeoutMs !== undefined) {
        node.due = this.now + timeoutMs;
        return;
      }
      if (event) node.events.push(event);
      else for (const address of to) this.send(node.address, address, datagram);
    }
  }

  send(from, to, datagram) {
    if (this.#random() < this.loss) return;
    const copies = this.#random() < this.twice ? 2 : 1;
    for (let i = 0; i < copies; i += 1) {
      const at = this.now + DELAY + this.#random() * JITTER;
      this.#underWay.push({ at, from, to, datagram: datagram.slice() });
    }
  }

  /** Moves the time forward. */
  run(ms) {
    const end = this.now + ms;
    let standing = 0;
    for (;;) {
      const due = [...this.nodes.map((node) => node.due), ...this.#underWay.map(({ at }) => at)];
      const next = Math.max(this.now, Math.min(...due));
      if (next > end) break;
      standing = next > this.now ? 0 : standing + 1;
      if (standing > 1000) throw new Error('a link was due 1,000 times in a row at the same time');
      this.#moveTo(next);
      this.#deliver();
      for (const node of this.nodes.filter((one) => one.due <= next)) {
        node.link.timeout();
        this.settle(node);
      }
    }
    this.#moveTo(end);
  }

  #moveTo(time) {
    this.now = time;
    for (const { clock } of this.nodes) clock.set(time);
  }

  #deliver() {
    const arrived = this.#underWay.filter(({ at }) => at <= this.now);
    this.#underWay = this.#underWay.filter(({ at }) => at > this.now);
    for (const { from, to, datagram } of arrived) {
      const node = this.nodes.find(({ address }) => address === to);
      if (!node) continue;
      node.link.receive(from, datagram);
      this.settle(node);
    }
  }
}

module.exports = { Net, numbersFrom };
