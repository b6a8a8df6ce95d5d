// Masters for gatekeepers: a dthrottled, and a small independent one that follows Smockron's document
// and uses npm's zeromq.
'use strict';

const { setTimeout: sleep } = require('node:timers/promises');

const { Publisher, Subscriber } = require('zeromq');

const { Daemon } = require('./daemons.js');

const LONG = 30_000;

/** A dthrottled as master of the domain web. */
class DaemonMaster {
  constructor({ rate, burst }) {
    this.daemon = new Daemon(`[domains.web]\nrate = "${rate}/s"\nburst = ${burst}`, 'smockron = "127.0.0.1:0"');
  }

  async start() {
    await this.daemon.start();
    this.address = this.daemon.smockron;
    this.daemon.writeKeys(`smockron = "${this.address}"`);
    return this;
  }

  kill() {
    return this.daemon.kill();
  }

  /** Starts again on the same ports, as soon as they are free. */
  restart() {
    return waitUntil(() => this.daemon.start().catch(() => false));
  }

  end() {
    return this.daemon.end();
  }
}

/**
 * A master that follows the document, for any domain:
 * next = max(prev, max(timestamp, now) - burst / rate) + 1 / rate.
 */
class IndependentMaster {
  constructor({ rate, burst }) {
    this.intervalMs = 1000 / rate;
    this.burstMs = burst * this.intervalMs;
    this.next = new Map();
    /** @type {string[][]} All received messages. */
    this.messages = [];
  }

  async start() {
    await waitUntil(() => this.bind(20_000 + 2 * Math.floor(Math.random() * 10_000)));
    return this;
  }

  /** Binds two consecutive ports. Returns false if one is in use. */
  async bind(port) {
    this.accounting = new Subscriber({ linger: 0 });
    this.control = new Publisher({ linger: 0 });
    try {
      await this.accounting.bind(`tcp://127.0.0.1:${port}`);
      await this.control.bind(`tcp://127.0.0.1:${port + 1}`);
    } catch {
      this.close();
      return false;
    }
    this.address = `127.0.0.1:${port}`;
    this.accounting.subscribe('');
    this.work = this.serve(this.accounting, this.control);
    return true;
  }

  async serve(accounting, control) {
    try {
      for await (const frames of accounting) await this.take(frames.map(String), control);
    } catch (error) {
      if (!accounting.closed) throw error;
    }
  }

  async take(frames, control) {
    this.messages.push(frames);
    const [topic, status, who, received, delayed] = frames;
    if (status === 'REJECTED') return;
    const now = Date.now();
    const counted = Math.max(Number(status === 'DELAYED' ? delayed : received), now);
    const next = Math.max(this.next.get(who) ?? 0, counted - this.burstMs) + this.intervalMs;
    this.next.set(who, next);
    if (next > now) await control.send([topic, 'DELAY_UNTIL', who, String(Math.ceil(next))]);
  }

  close() {
    this.accounting.close();
    this.control.close();
  }

  async kill() {
    this.close();
    await this.work;
  }

  /** Starts again on the same ports, as soon as they are free. */
  restart() {
    return waitUntil(() => this.bind(Number(this.address.split(':')[1])));
  }

  async end() {
    if (!this.accounting.closed) await this.kill();
  }
}

/**
 * Waits until a condition holds.
 * @param {() => unknown} condition
 */
async function waitUntil(condition) {
  const end = performance.now() + LONG;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`the condition did not hold in time: ${condition}`);
    await sleep(5);
  }
}

module.exports = { LONG, DaemonMaster, IndependentMaster, waitUntil };
