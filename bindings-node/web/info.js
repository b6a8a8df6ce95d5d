// The property `rateLimit` of requests.
'use strict';

/** @import { Native } from '../surface.js' */
/** @import { Outcome } from './delay.js' */

/** The `tagKind` of a tag that the application gave. */
const GIVEN = 0;

/**
 * The information about a request. Its own properties, which are listed, copied and sent as JSON, are those of
 * express-rate-limit. `decision` and `tag` are getters.
 */
class RateLimitInfo {
  #outcome;
  #native;

  /**
   * @param {Outcome} outcome
   * @param {Native} native
   */
  constructor(outcome, native) {
    const { limit, remaining, balance, resetAfterMs } = outcome.decision;
    this.limit = limit;
    // Infinity - Infinity is NaN in a domain without rules.
    this.used = Math.max(0, limit - balance) || 0;
    this.remaining = remaining;
    this.resetTime = new Date(outcome.at + resetAfterMs);
    this.key = copy(outcome.tag);
    this.#outcome = outcome;
    this.#native = native;
  }

  get decision() {
    return this.#outcome.decision;
  }

  /** The tag as the methods of a throttle accept it. An address is bytes. */
  get tag() {
    const { tag, tagKind } = this.#outcome;
    return tagKind === GIVEN ? copy(tag) : this.#native.webTag(tagKind, tag);
  }
}

/** @param {string | Uint8Array} tag */
const copy = (tag) => (typeof tag === 'string' ? tag : new Uint8Array(tag));

/**
 * A property of Express's requests whose value is created on first access. It is an accessor of `app.request`, from
 * which the requests of an application inherit. Express gives every request another hidden class, so an ordinary
 * property would take 1.1 us, and creating its value 1 us: together 3 % of a request.
 */
class LazyProperty {
  #name;
  /** The property of the array `rawHeaders`, which each request has, that stores the outcome. */
  #key;
  /** @type {WeakMap<object, boolean>} Whether requests with this prototype inherit the accessor. */
  #known = new WeakMap();
  /** @type {WeakSet<object>} The objects that have the accessor. */
  #holders = new WeakSet();

  /** @param {string} name */
  constructor(name) {
    this.#name = name;
    this.#key = Symbol(name);
  }

  /**
   * Stores the outcome of a request. Returns false if the request needs an ordinary property.
   * @param {any} request
   * @param {Outcome} outcome
   * @param {Native} native
   */
  keep(request, outcome, native) {
    const prototype = Object.getPrototypeOf(request);
    const holds = this.#known.get(prototype) ?? this.#inspect(prototype);
    if (!holds || Object.hasOwn(request, this.#name)) return false;
    const { rawHeaders } = request;
    if (!Array.isArray(rawHeaders)) return false;
    // A WeakMap of requests would add 4 % to a request.
    /** @type {any} */ (rawHeaders)[this.#key] = { outcome, native, info: undefined };
    return true;
  }

  /**
   * Whether requests with this prototype inherit the accessor. Defines it if possible.
   * @param {object} prototype
   */
  #inspect(prototype) {
    const name = this.#name;
    let holder = null;
    let isTaken = false;
    // The accessor belongs to the outermost application, because a request may leave a mounted one.
    for (let one = prototype; one !== null && Object.hasOwn(one, 'app'); one = Object.getPrototypeOf(one)) {
      holder = one;
      isTaken ||= Object.hasOwn(one, name) && !this.#holders.has(one);
    }
    let holds = holder !== null && !isTaken;
    if (holder !== null && holds && !this.#holders.has(holder)) {
      holds = !(name in holder) && Object.isExtensible(holder);
      if (holds) this.#define(holder);
    }
    this.#known.set(prototype, holds);
    return holds;
  }

  /** @param {object} holder */
  #define(holder) {
    const name = this.#name;
    const key = this.#key;
    Object.defineProperty(holder, name, {
      configurable: true,
      get() {
        const found = this.rawHeaders?.[key];
        return found && (found.info ??= new RateLimitInfo(found.outcome, found.native));
      },
      set(value) {
        Object.defineProperty(this, name, { value, configurable: true, enumerable: true, writable: true });
      },
    });
    this.#holders.add(holder);
  }
}

/** @type {Map<string, LazyProperty>} By name, shared by all middleware of the process. */
const properties = new Map();

/** @param {string} name */
function lazyProperty(name) {
  const property = properties.get(name) ?? new LazyProperty(name);
  properties.set(name, property);
  return property;
}

exports.GIVEN = GIVEN;
exports.lazyProperty = lazyProperty;
exports.RateLimitInfo = RateLimitInfo;
