// The two sockets to a master: accounting out, control in, as Smockron's document has them. Nothing
// here waits for the master, and nothing that it says or does not say is an error.
'use strict';

const { debuglog } = require('node:util');

const { misuse } = require('../web/errors.js');
const { toKey } = require('./reader.js');

/**
 * @typedef {object} MasterCounts
 * @property {number} sent Messages given to ZeroMQ.
 * @property {number} dropped Messages that nobody took.
 * @property {number} received Times that the master named.
 * @property {number} bad Messages of the master that could not be read.
 */

/** Messages that wait for ZeroMQ, which is never long. */
const MOST_WAITING = 10_000;

const log = debuglog('dthrottle');

class Master {
  #accounting;
  #control;
  #topic;
  #delay;
  /** @type {(string | Uint8Array)[][]} */
  #waiting = [];
  #sending = false;
  #closed = false;
  /** @type {MasterCounts} */
  counts = { sent: 0, dropped: 0, received: 0, bad: 0 };

  /**
   * @param {string} accounting
   * @param {string} control
   * @param {string} domain
   * @param {(who: string, until: number) => void} delay
   */
  constructor(accounting, control, domain, delay) {
    const { Publisher, Subscriber } = loadZeromq();
    this.#topic = `${domain}\0`;
    this.#delay = delay;
    // A process that ends does not wait for a master that is not there.
    this.#accounting = new Publisher({ linger: 0 });
    this.#control = new Subscriber({ linger: 0 });
    this.#accounting.connect(accounting);
    this.#control.connect(control);
    this.#control.subscribe(this.#topic);
    this.#listen();
  }

  /**
   * Tells the master of a request.
   * @param {'ACCEPTED' | 'DELAYED' | 'REJECTED'} status
   * @param {Uint8Array} who
   * @param {number} received
   * @param {number | ''} delayed
   * @param {Uint8Array | undefined} [info]
   */
  tell(status, who, received, delayed, info) {
    if (this.#closed || this.#waiting.length >= MOST_WAITING) {
      this.counts.dropped += 1;
      return;
    }
    const frames = [this.#topic, status, who, String(received), String(delayed)];
    if (info !== undefined) frames.push(info);
    this.#waiting.push(frames);
    if (!this.#sending) this.#send();
  }

  close() {
    this.#closed = true;
    this.#waiting = [];
    this.#accounting.close();
    this.#control.close();
  }

  /** ZeroMQ takes one message at a time, and keeps or drops it by itself. */
  async #send() {
    this.#sending = true;
    for (let frames = this.#waiting.shift(); frames; frames = this.#waiting.shift()) {
      try {
        await this.#accounting.send(frames);
        this.counts.sent += 1;
      } catch (error) {
        this.counts.dropped += 1;
        log('accounting: %s', error);
      }
    }
    this.#sending = false;
  }

  async #listen() {
    while (!this.#closed) {
      try {
        this.#take(await this.#control.receive());
      } catch (error) {
        if (this.#closed) return;
        log('control: %s', error);
        // Whatever it is, it must not keep the process busy.
        await new Promise((resolve) => setTimeout(resolve, 1000).unref());
      }
    }
  }

  /** @param {Buffer[]} frames */
  #take([topic, command, who, until]) {
    // A topic is the beginning of others.
    if (topic?.toString() !== this.#topic) return;
    const time = until?.toString() ?? '';
    // Commands of later versions are none of ours.
    if (command?.toString() !== 'DELAY_UNTIL' || who === undefined || !/^\d{1,15}$/.test(time)) {
      this.counts.bad += 1;
      return;
    }
    this.counts.received += 1;
    this.#delay(toKey(who), Number(time));
  }
}

/** @returns {any} */
function loadZeromq() {
  try {
    return require('zeromq');
  } catch (error) {
    const why = /** @type {Error} */ (error).message.split('\n', 1)[0];
    throw misuse('smockron', `needs the package zeromq: npm install zeromq (${why})`);
  }
}

module.exports = { Master };
