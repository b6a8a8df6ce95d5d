// The two sockets to a master, as Smockron's document describes them: reports go out on the accounting socket, and
// delays come in on the control socket. Nothing here waits for the master, and a bad or missing message is no error.
'use strict';

const { debuglog } = require('node:util');

const { badOption } = require('../web/errors.js');
const { toKey } = require('./reader.js');

/**
 * @typedef {object} MasterCounts
 * @property {number} sent Messages passed to ZeroMQ.
 * @property {number} dropped Messages that were not sent, because too many were waiting or the socket was closed.
 * @property {number} received Delays that the master sent.
 * @property {number} bad Messages of the master that could not be read.
 */

/** The maximum number of messages that wait for ZeroMQ. */
const MAX_WAITING = 10_000;

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
    // Without linger, the process does not wait for an absent master at its end.
    this.#accounting = new Publisher({ linger: 0 });
    this.#control = new Subscriber({ linger: 0 });
    this.#accounting.connect(accounting);
    this.#control.connect(control);
    this.#control.subscribe(this.#topic);
    this.#listen();
  }

  /**
   * Reports a request to the master.
   * @param {'ACCEPTED' | 'DELAYED' | 'REJECTED'} status
   * @param {Uint8Array} who
   * @param {number} received
   * @param {number | ''} delayed
   * @param {Uint8Array | undefined} [info]
   */
  report(status, who, received, delayed, info) {
    if (this.#closed || this.#waiting.length >= MAX_WAITING) {
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

  /** Sends the waiting messages one at a time, as ZeroMQ requires. ZeroMQ itself queues or drops them. */
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
        this.#handle(await this.#control.receive());
      } catch (error) {
        if (this.#closed) return;
        log('control: %s', error);
        // Avoids a busy loop if the error persists.
        await new Promise((resolve) => setTimeout(resolve, 1000).unref());
      }
    }
  }

  /** @param {Buffer[]} frames */
  #handle([topic, command, who, until]) {
    // A subscription also receives longer topics with this prefix.
    if (topic?.toString() !== this.#topic) return;
    const time = until?.toString() ?? '';
    // Later versions may have other commands.
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
    throw badOption('smockron', `needs the package zeromq: npm install zeromq (${why})`);
  }
}

module.exports = { Master };
