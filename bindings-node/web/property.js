// Properties of requests: reading them, and the one that the application finds there.
//
// Express gives every request another prototype, after which the engine has a shape for this request
// alone. What is quick elsewhere is not there: code that reads a property has never seen the shape,
// and to add a property copies the description of all others, which takes longer than a check.
'use strict';

const { IncomingMessage } = require('node:http');

const { Verdict } = require('./verdict.js');

/**
 * A property of an object whose shape nobody has seen before. Because it is asked for various
 * properties, the engine looks for them in the object, and not for a memory of its shape.
 * @param {any} object
 * @param {string} name
 */
const read = (object, name) => object[name];

/** The part of every stream that is Node's own. It keeps its shape. */
const STATE = '_readableState';
/** At the request itself. */
const OWN = 'own';
/** Nowhere: requests need what has this name. */
const METHOD = 'method';

/** @type {Map<string, symbol>} By the names of properties, where their values are in that part. */
const slots = new Map();

/**
 * What the application finds at its requests. Those of Express inherit it: so `in` finds it, with
 * nothing in it, also at requests that nobody was asked about, and `delete` leaves it there.
 */
class RequestProperty {
  #name;
  #slot;
  /** @type {object | null} The prototype of most requests, the same for all of an application. */
  #kind = null;
  #place = OWN;

  /** @param {string} name */
  constructor(name) {
    this.#name = name;
    this.#slot = slots.get(name) ?? Symbol(name);
    slots.set(name, this.#slot);
  }

  /**
   * Throws where a request cannot have it.
   * @param {any} request
   * @param {Verdict} verdict
   */
  set(request, verdict) {
    const kind = Object.getPrototypeOf(request);
    if (kind !== this.#kind) {
      this.#kind = kind;
      this.#place = placeOf(kind, this.#name, this.#slot);
    }
    if (this.#place === METHOD) throw new TypeError(`${this.#name} is a method of requests; give another name`);
    // One that has it as its own, from before Express or from before the accessor, would hide ours.
    const inherits = this.#place === STATE && !Object.hasOwn(request, this.#name);
    const state = inherits ? read(request, STATE) : undefined;
    if (state === undefined) request[this.#name] = verdict.info;
    else state[this.#slot] = verdict;
  }
}

/**
 * Where requests of a kind have the property: in that part, if they have the accessor from the
 * prototype of all of Express's, which is given it if need be. What the application or somebody else
 * has there stays.
 * @param {object} kind
 * @param {string} name
 * @param {symbol} slot
 */
function placeOf(kind, name, slot) {
  const top = topOf(kind);
  // One that cannot be changed leaves it to the request.
  if (top !== null && !(name in kind)) Reflect.defineProperty(top, name, toAccessor(name, slot));
  for (let it = kind; it; it = Object.getPrototypeOf(it)) {
    const found = Object.getOwnPropertyDescriptor(it, name);
    if (typeof found?.value === 'function') return METHOD;
    if (found) return found.get !== undefined && accessors.has(found.get) ? STATE : OWN;
  }
  return OWN;
}

/**
 * The prototype of all of Express's requests; null for a request of another kind.
 * @param {any} kind
 */
function topOf(kind) {
  if (typeof kind?.app !== 'function') return null;
  let top = kind;
  for (let next = kind; next !== IncomingMessage.prototype; next = Object.getPrototypeOf(next)) {
    if (next === null) return null;
    top = next;
  }
  return top;
}

/** @type {WeakSet<Function>} */
const accessors = new WeakSet();

/**
 * @param {string} name
 * @param {symbol} slot
 * @returns {PropertyDescriptor}
 */
function toAccessor(name, slot) {
  const accessor = {
    configurable: true,
    /** @this {any} */
    get() {
      const value = this[STATE]?.[slot];
      return value instanceof Verdict ? value.info : value;
    },
    /**
     * @this {any}
     * @param {unknown} value
     */
    set(value) {
      if (this[STATE]) this[STATE][slot] = value;
      else Object.defineProperty(this, name, { value, configurable: true, enumerable: true, writable: true });
    },
  };
  accessors.add(accessor.get);
  return accessor;
}

module.exports = { RequestProperty, read };
