// Throttles that the middleware of a process share: one for each table and cluster, so that there is
// one exchange with the cluster, however many routes have a limit.
//
// A throttle has its domains from the beginning. So with each middleware that brings one, a throttle
// with all of them takes the place of the last, until the first request: nothing that costs anything
// starts before. Who comes later has another throttle, on the same table.
'use strict';

const { inspect } = require('node:util');

/** @import { Domain, Throttle } from '../index.js' */

/** @typedef {Record<string, unknown>} Domains Their configuration, by name. */
/** @typedef {{ throttle: Throttle, name: string | undefined }} Made A throttle, and its table's name. */
/** @typedef {(domains: Domains) => Made} Open */

/** @type {Map<string, Pool>} By what they share. */
const pools = new Map();

class Pool {
  #key;
  /** @type {Map<string, string>} The domains, as text. */
  #known = new Map();
  /** @type {Domains} */
  #domains = {};
  /** @type {Made | undefined} */
  #made;
  #used = false;
  #users = 0;

  /** @param {string} key */
  constructor(key) {
    this.#key = key;
  }

  /**
   * Whether domains can be had here: they are there, or there is still time.
   * @param {Domains} domains
   */
  takes(domains) {
    return Object.entries(domains).every(([name, domain]) => {
      const known = this.#known.get(name);
      return known === undefined ? !this.#used : known === toKey(domain);
    });
  }

  /**
   * @param {Domains} domains
   * @param {Open} open
   */
  add(domains, open) {
    const all = { ...this.#domains, ...domains };
    if (this.#made === undefined || Object.keys(domains).some((name) => !this.#known.has(name))) {
      const made = open(all);
      this.#made?.throttle.close();
      this.#made = made;
    }
    this.#domains = all;
    for (const [name, domain] of Object.entries(domains)) this.#known.set(name, toKey(domain));
    this.#users += 1;
  }

  /** The table's name. */
  get table() {
    return this.#made?.name;
  }

  /**
   * A domain, to look at.
   * @param {string} name
   * @returns {Domain}
   */
  look(name) {
    return /** @type {Made} */ (this.#made).throttle.domain(name);
  }

  /**
   * A domain, to ask.
   * @param {string} name
   */
  use(name) {
    this.#used = true;
    return this.look(name);
  }

  /** One user less. The last ends the throttle. */
  leave() {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#made?.throttle.close();
    if (pools.get(this.#key) === this) pools.delete(this.#key);
  }
}

/**
 * Anything as text, to compare it.
 * @param {unknown} value
 */
const toKey = (value) => inspect(value, { depth: 9, maxArrayLength: null, maxStringLength: null, breakLength: Infinity });

/**
 * The pool for what is shared, with these domains.
 * @param {unknown[] | null} what Null: nothing is shared.
 * @param {Domains} domains
 * @param {Open} open Opens a throttle with these domains, and those that the pool has.
 */
function share(what, domains, open) {
  const key = toKey(what);
  const known = what === null ? undefined : pools.get(key);
  const pool = known?.takes(domains) ? known : new Pool(key);
  pool.add(domains, open);
  if (what !== null) pools.set(key, pool);
  return pool;
}

exports.Pool = Pool;
exports.share = share;
exports.toKey = toKey;
