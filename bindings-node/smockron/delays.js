// The delays that the master sent for clients, and the requests that wait. Independent of sockets and HTTP.
//
// The master sends a time for a client, and sends another one when it hears that a request has used the first.
// So each time is given to one request, as its turn; further requests wait until the master sends the next time.
// The turns of a client are spaced as the master counts them. If the master stops sending, the requests that
// wait for it pass after ANSWER_MS.
'use strict';

/**
 * @typedef {object} DelayedRequest A request that waits. All times are milliseconds since 1970.
 * @property {number} arrived
 * @property {(status: 'DELAYED', until: number) => void} given Called when the request gets a turn, for which it waits.
 * @property {(status: 'ACCEPTED' | 'DELAYED') => void} pass Called when the request may pass.
 * @property {(until: number) => void} reject Called if the request would have to wait for too long.
 * @property {number} [turn]
 * @property {NodeJS.Timeout} [timer]
 */

/**
 * @typedef {object} Client
 * @property {number} until The latest time that the master sent. Requests do not pass before it.
 * @property {number} taken The latest time that was given to a request.
 * @property {number} reportedAt When that was reported to the master.
 * @property {DelayedRequest[]} waiting The requests without a turn, the oldest first.
 * @property {Set<DelayedRequest>} turns The requests with a turn.
 */

/** The maximum number of clients. The oldest are removed first, and their requests pass. */
const MAX_CLIENTS = 100_000;
/** The longest time that requests wait for the answer of the master to a report. */
const ANSWER_MS = 250;
/** The longest time that setTimeout accepts. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

class Delays {
  /** @type {Map<string, Client>} */
  #clients = new Map();
  #maxDelayMs;
  #maxDelayed;
  #delayed = 0;

  /**
   * @param {number} maxDelayMs
   * @param {number} maxDelayed
   */
  constructor(maxDelayMs, maxDelayed) {
    this.#maxDelayMs = maxDelayMs;
    this.#maxDelayed = maxDelayed;
  }

  /** The number of waiting requests. */
  get delayed() {
    return this.#delayed;
  }

  /** The number of clients. */
  get size() {
    return this.#clients.size;
  }

  /**
   * Returns the time until which the client's requests must wait, or 0 if they may pass.
   * @param {string} who
   * @param {number} now
   */
  until(who, now) {
    const client = this.#clients.get(who);
    if (client === undefined) return 0;
    if (client.until > now || client.waiting.length > 0) return client.until;
    if (client.turns.size === 0) this.#clients.delete(who);
    return 0;
  }

  /**
   * Adds a waiting request. Returns false if the request must be rejected instead.
   * @param {string} who
   * @param {DelayedRequest} delayed
   */
  add(who, delayed) {
    const client = this.#clients.get(who);
    if (client === undefined || this.#delayed >= this.#maxDelayed) return false;
    if (client.until - delayed.arrived > this.#maxDelayMs) return false;
    this.#delayed += 1;
    client.waiting.push(delayed);
    this.#give(client);
    return true;
  }

  /**
   * Removes a request whose client left. The master has counted its turn, so the next request gets it.
   * @param {string} who
   * @param {DelayedRequest} delayed
   */
  leave(who, delayed) {
    const client = this.#clients.get(who);
    if (client === undefined) return;
    const index = client.waiting.indexOf(delayed);
    if (index >= 0) client.waiting.splice(index, 1);
    else if (!client.turns.delete(delayed)) return;
    clearTimeout(delayed.timer);
    this.#delayed -= 1;
    const next = delayed.turn === undefined ? undefined : client.waiting.shift();
    if (next !== undefined && delayed.turn !== undefined) this.#wait(client, next, delayed.turn);
  }

  /**
   * Handles a time that the master sent.
   * @param {string} who
   * @param {number} until
   */
  delay(who, until) {
    const client = this.#clients.get(who) ?? { until: 0, taken: 0, reportedAt: 0, waiting: [], turns: new Set() };
    if (until <= client.until) return;
    client.until = until;
    // Moves the client to the end, because the first in the map are removed first.
    this.#clients.delete(who);
    this.#clients.set(who, client);
    this.#give(client);
    if (this.#clients.size > MAX_CLIENTS) this.#forget();
  }

  /** Lets all waiting requests pass. */
  close() {
    for (const client of this.#clients.values()) {
      for (const delayed of client.turns) this.#pass(client, delayed, 'DELAYED');
      for (const delayed of client.waiting.splice(0)) {
        this.#delayed -= 1;
        delayed.pass('ACCEPTED');
      }
    }
    this.#clients.clear();
  }

  /**
   * Gives the latest time to the first request that can wait for it, unless it is given already.
   * @param {Client} client
   */
  #give(client) {
    while (client.until > client.taken && client.waiting.length > 0) {
      const delayed = /** @type {DelayedRequest} */ (client.waiting.shift());
      if (client.until - delayed.arrived > this.#maxDelayMs) {
        this.#delayed -= 1;
        delayed.reject(client.until);
      } else {
        client.taken = client.until;
        client.reportedAt = Date.now();
        delayed.given('DELAYED', client.until);
        this.#wait(client, delayed, client.until);
      }
    }
  }

  /**
   * @param {Client} client
   * @param {DelayedRequest} delayed
   * @param {number} until
   */
  #wait(client, delayed, until) {
    delayed.turn = until;
    client.turns.add(delayed);
    const ms = Math.min(Math.max(until - Date.now(), 0), LONGEST_TIMER_MS);
    delayed.timer = setTimeout(() => {
      // A timer may fire a fraction of a millisecond early; a turn must not be early.
      if (until > Date.now()) {
        this.#wait(client, delayed, until);
        return;
      }
      this.#pass(client, delayed, 'DELAYED');
      const left = client.reportedAt + ANSWER_MS - Date.now();
      if (left > 0 && client.waiting.length > 0) setTimeout(() => this.#passAll(client, until), left);
      else this.#passAll(client, until);
    }, ms);
  }

  /**
   * Lets the waiting requests of a client pass if the master has sent no later time than `since`: it is gone, or
   * did not get the report.
   * @param {Client} client
   * @param {number} since
   */
  #passAll(client, since) {
    if (client.until > since) return;
    for (const delayed of client.waiting.splice(0)) {
      this.#delayed -= 1;
      delayed.pass('ACCEPTED');
    }
  }

  /**
   * @param {Client} client
   * @param {DelayedRequest} delayed
   * @param {'DELAYED'} status
   */
  #pass(client, delayed, status) {
    client.turns.delete(delayed);
    clearTimeout(delayed.timer);
    this.#delayed -= 1;
    delayed.pass(status);
  }

  /** Removes clients whose delay has passed, and then the oldest ones. */
  #forget() {
    const now = Date.now();
    for (const [who, client] of this.#clients) {
      const idle = client.waiting.length === 0 && client.turns.size === 0;
      if (idle && client.until <= now) this.#clients.delete(who);
    }
    for (const [who, client] of this.#clients) {
      // Removes down to half, so that the next new client does not cause another pass.
      if (this.#clients.size <= MAX_CLIENTS / 2) return;
      if (client.waiting.length === 0 && client.turns.size === 0) this.#clients.delete(who);
    }
  }
}

module.exports = { Delays, MAX_CLIENTS };
