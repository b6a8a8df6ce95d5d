// Masters for gatekeepers: a dthrottled, and a small one written after Smockron's document with npm's
// zeromq, which has nothing of ours.
'use strict';

const { setTimeout: sleep } = require('node:timers/promises');

const { Publisher, Subscriber } = require('zeromq');

const { Daemon } = require('./daemons.js');

const LONG = 30_000;

/** A dthrottled as master of domain web. */
class OurMaster {
  constructor({ rate, burst }) {
    this.daemon = new Daemon(`[domains.web]\nrate = "${rate}/s"\nburst = ${burst}`, 'smockron = "127.0.0.1:0"');
  }

  async start() {
    await this.daemon.start();
    this.place = this.daemon.smockron;
    this.daemon.keep(`smockron = "${this.place}"`);
    return this;
  }

  kill() {
    return this.daemon.kill();
  }

  /** On the old ports, as soon as they are free. */
  restart() {
    return until(() => this.daemon.start().catch(() => false));
  }

  end() {
    return this.daemon.end();
  }
}

/**
 * A master by the document, for any domain:
 * next = max(prev, max(timestamp, now) - burst / rate) + 1 / rate.
 */
class PlainMaster {
  constructor({ rate, burst }) {
    this.intervalMs = 1000 / rate;
    this.burstMs = burst * this.intervalMs;
    this.next = new Map();
    /** @type {string[][]} Every message, for tests that look at them. */
    this.messages = [];
  }

  async start() {
    await until(() => this.bind(20_000 + 2 * Math.floor(Math.random() * 10_000)));
    return this;
  }

  /** Two ports in a row, either of which may be anybody's. */
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
    this.place = `127.0.0.1:${port}`;
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

  /** On the old ports, as soon as they are free. */
  restart() {
    return until(() => this.bind(Number(this.place.split(':')[1])));
  }

  async end() {
    if (!this.accounting.closed) await this.kill();
  }
}

/**
 * Waits until something is so.
 * @param {() => unknown} condition
 */
async function until(condition) {
  const end = performance.now() + LONG;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not in time: ${condition}`);
    await sleep(5);
  }
}

module.exports = { LONG, OurMaster, PlainMaster, until };
