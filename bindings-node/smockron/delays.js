// Who is held until when: the gatekeeper's memory of what the master said, and the requests that
// wait. Knows nothing of sockets or HTTP.
//
// The master names one time for a client, and another when it has heard who took that one. So a time
// is given to one request; further ones wait until the master names the next. The turns of a client
// are spaced as the master counts them, and a master that is silent holds nobody for much longer.
'use strict';

/**
 * @typedef {object} Held A request that waits.
 * @property {number} arrived In milliseconds since 1970, as all times here.
 * @property {(status: 'DELAYED', until: number) => void} given It has a turn, and waits for it.
 * @property {(status: 'ACCEPTED' | 'DELAYED') => void} pass Its turn has come.
 * @property {(until: number) => void} reject It would have to wait for too long.
 * @property {number} [turn]
 * @property {NodeJS.Timeout} [timer]
 */

/**
 * @typedef {object} Client
 * @property {number} until Nothing is let through before; never lowered.
 * @property {number} taken The latest time that was given to a request.
 * @property {number} toldAt When that was, and the master was told.
 * @property {Held[]} waiting Without a turn, the oldest first.
 * @property {Set<Held>} turns With one.
 */

/** Clients that are remembered; of more the oldest are forgotten, and so let through. */
const MOST_CLIENTS = 100_000;
/** How long the master has to answer before those who wait for it go on. */
const ANSWER_MS = 250;
/** What setTimeout takes at most. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

class Delays {
  /** @type {Map<string, Client>} */
  #clients = new Map();
  #maxDelayMs;
  #maxHeld;
  #held = 0;

  /**
   * @param {number} maxDelayMs
   * @param {number} maxHeld
   */
  constructor(maxDelayMs, maxHeld) {
    this.#maxDelayMs = maxDelayMs;
    this.#maxHeld = maxHeld;
  }

  /** How many requests wait. */
  get held() {
    return this.#held;
  }

  /** How many clients are remembered. */
  get size() {
    return this.#clients.size;
  }

  /**
   * Until when a client is to be held; 0: it is not.
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
   * Holds a request of a client that is to be held, or says that it is to be rejected.
   * @param {string} who
   * @param {Held} held
   * @returns {boolean} Whether it is held.
   */
  hold(who, held) {
    const client = this.#clients.get(who);
    if (client === undefined || this.#held >= this.#maxHeld) return false;
    if (client.until - held.arrived > this.#maxDelayMs) return false;
    this.#held += 1;
    client.waiting.push(held);
    this.#give(client);
    return true;
  }

  /**
   * Forgets a request whose client is gone. The master counts its turn, so the next takes it.
   * @param {string} who
   * @param {Held} held
   */
  leave(who, held) {
    const client = this.#clients.get(who);
    if (client === undefined) return;
    const place = client.waiting.indexOf(held);
    if (place >= 0) client.waiting.splice(place, 1);
    else if (!client.turns.delete(held)) return;
    clearTimeout(held.timer);
    this.#held -= 1;
    const next = held.turn === undefined ? undefined : client.waiting.shift();
    if (next !== undefined && held.turn !== undefined) this.#wait(client, next, held.turn);
  }

  /**
   * The master named a time.
   * @param {string} who
   * @param {number} until
   */
  delay(who, until) {
    const client = this.#clients.get(who) ?? { until: 0, taken: 0, toldAt: 0, waiting: [], turns: new Set() };
    if (until <= client.until) return;
    client.until = until;
    // Again at the end: those that nothing was heard of are forgotten first.
    this.#clients.delete(who);
    this.#clients.set(who, client);
    this.#give(client);
    if (this.#clients.size > MOST_CLIENTS) this.#forget();
  }

  /** Lets everything through that waits. */
  close() {
    for (const client of this.#clients.values()) {
      for (const held of client.turns) this.#pass(client, held, 'DELAYED');
      for (const held of client.waiting.splice(0)) {
        this.#held -= 1;
        held.pass('ACCEPTED');
      }
    }
    this.#clients.clear();
  }

  /**
   * Gives the time that the master named to the first that can wait for it, unless somebody has it.
   * @param {Client} client
   */
  #give(client) {
    while (client.until > client.taken && client.waiting.length > 0) {
      const held = /** @type {Held} */ (client.waiting.shift());
      if (client.until - held.arrived > this.#maxDelayMs) {
        this.#held -= 1;
        held.reject(client.until);
      } else {
        client.taken = client.until;
        client.toldAt = Date.now();
        held.given('DELAYED', client.until);
        this.#wait(client, held, client.until);
      }
    }
  }

  /**
   * @param {Client} client
   * @param {Held} held
   * @param {number} until
   */
  #wait(client, held, until) {
    held.turn = until;
    client.turns.add(held);
    const ms = Math.min(Math.max(until - Date.now(), 0), LONGEST_TIMER_MS);
    held.timer = setTimeout(() => {
      // A timer may be early by a fraction, and a turn must not be.
      if (until > Date.now()) {
        this.#wait(client, held, until);
        return;
      }
      this.#pass(client, held, 'DELAYED');
      const left = client.toldAt + ANSWER_MS - Date.now();
      if (left > 0 && client.waiting.length > 0) setTimeout(() => this.#goOn(client, until), left);
      else this.#goOn(client, until);
    }, ms);
  }

  /**
   * Lets pass who waits for the master, if it has said nothing since that time: it is gone, or did
   * not get the message.
   * @param {Client} client
   * @param {number} since
   */
  #goOn(client, since) {
    if (client.until > since) return;
    for (const held of client.waiting.splice(0)) {
      this.#held -= 1;
      held.pass('ACCEPTED');
    }
  }

  /**
   * @param {Client} client
   * @param {Held} held
   * @param {'DELAYED'} status
   */
  #pass(client, held, status) {
    client.turns.delete(held);
    clearTimeout(held.timer);
    this.#held -= 1;
    held.pass(status);
  }

  /** Forgets what is over, and then what is oldest. */
  #forget() {
    const now = Date.now();
    for (const [who, client] of this.#clients) {
      const idle = client.waiting.length === 0 && client.turns.size === 0;
      if (idle && client.until <= now) this.#clients.delete(who);
    }
    for (const [who, client] of this.#clients) {
      // Half of them, so that this is not done for each that comes.
      if (this.#clients.size <= MOST_CLIENTS / 2) return;
      if (client.waiting.length === 0 && client.turns.size === 0) this.#clients.delete(who);
    }
  }
}

module.exports = { Delays, MOST_CLIENTS };
