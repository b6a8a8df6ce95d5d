// A domain that a middleware asks, and what is known about it before the first request.
'use strict';

/** @import { Domain, DomainRule } from '../index.js' */
/** @import { Policy } from './headers.js' */
/** @import { Pool } from './pool.js' */

/** @type {WeakMap<object, number>} Throttles without a name, told apart. */
const places = new WeakMap();
let lastPlace = 0;

class Opened {
  #find;
  #end;
  /** @type {Domain | undefined} */
  #domain;

  /**
   * @param {Domain} seen
   * @param {string | undefined} table
   * @param {object} throttle
   * @param {() => Domain} find
   * @param {() => void} end
   */
  constructor(seen, table, throttle, find, end) {
    this.#find = find;
    this.#end = end;
    this.name = seen.name;
    /** @type {DomainRule[]} */
    this.rules = seen.rules;
    /** Its name; undefined: none, or the throttle came with it. */
    this.table = table;
    /** Where it counts: a table's name, or a number for a throttle of its own. */
    this.place = table ?? toPlace(throttle);
    /** @type {Map<string, Policy>} What clients may know of its rules, by the rule's name. */
    this.policies = toPolicies(this.name, this.rules);
  }

  /**
   * A domain of the application's own throttle.
   * @param {Domain} domain
   * @param {object} throttle
   */
  static given(domain, throttle) {
    return new Opened(domain, undefined, throttle, () => domain, () => {});
  }

  /**
   * A domain of a throttle that was made for middleware.
   * @param {Pool} pool
   * @param {string} name
   */
  static shared(pool, name) {
    return new Opened(pool.look(name), pool.table, pool, () => pool.use(name), () => pool.leave());
  }

  /** The least that a bucket holds. */
  get least() {
    return Math.min(Infinity, ...this.rules.map((rule) => rule.limit));
  }

  /** The domain, to ask. */
  get domain() {
    this.#domain ??= this.#find();
    return this.#domain;
  }

  /** Ends the throttle, if it was made for this. */
  close() {
    this.#end();
    this.#end = () => {};
  }
}

/**
 * @param {string} name
 * @param {DomainRule[]} rules
 */
function toPolicies(name, rules) {
  // A rule that nobody named is known by the domain's name.
  const alone = rules.length === 1 && rules[0].name === 'rule1';
  return new Map(rules.map((rule) => [
    rule.name,
    { name: alone ? name : rule.name, quota: rule.limit, windowMs: rule.windowMs },
  ]));
}

/** @param {object} throttle */
function toPlace(throttle) {
  const known = places.get(throttle);
  if (known !== undefined) return known;
  lastPlace += 1;
  places.set(throttle, lastPlace);
  return lastPlace;
}

exports.Opened = Opened;
