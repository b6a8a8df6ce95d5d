// The public classes of Node and WebAssembly, on top of a native part. They convert arguments, call the native part
// once, and convert the result. `index.d.ts` documents them.
'use strict';

const { makeBusy } = require('./busy.js');
const { makeClocks } = require('./clocks.js');
const { DthrottleError, attempt, explain } = require('./errors.js');
const { toMiddleware, OPEN } = require('./middleware.js');
const { toDecision, toStats } = require('./records.js');
const { describe, fromJson, isTable, toCount, toNumber, toOptions } = require('./values.js');
const { toTag, toTags, toText, toTruth } = require('./values.js');
const { encode } = require('./encode_config.js');

/** @import { Clock, DomainId, Handle, Native, Tag } from '../surface.js' */
/** @import { CheckOptions, ClusterEvent, ClusterStats, Decision } from '../index.js' */
/** @import { DomainRule, FileOptions, Stats, ThrottleOptions } from '../index.js' */

const UNLIMITED = Infinity;

const CHECK_OPTIONS = ['cost', 'maxDelayMs', 'partial', 'allowDebt'];
const FILE_OPTIONS = ['clock', 'table'];

/** The state of a throttle or domain. Users cannot make one, and so cannot call the constructor of Domain. */
class Parts {
  /**
   * @param {Handle} handle
   * @param {DomainId} id
   * @param {(() => void) | undefined} tick
   */
  constructor(handle, id, tick) {
    this.handle = handle;
    this.id = id;
    this.tick = tick;
  }

  /** Returns these parts, after setting their clock to the present time. */
  present() {
    this.tick?.();
    return this;
  }
}

/**
 * @param {Native} native
 * @param {() => number} [defaultNow] The default clock, if the native part has none.
 * @param {(throttle: object, partsOf: (throttle: any) => Parts) => void} [extend] Adds methods of this native part to
 *   the prototype of throttles.
 */
function makeApi(native, defaultNow, extend) {
  const { ManualClock, toSource } = makeClocks(native, defaultNow);
  const BusyThrottle = makeBusy(native, toSource, extend);

  /**
   * @param {() => Handle} open
   * @param {(() => void) | undefined} tick
   */
  function toParts(open, tick) {
    const handle = attempt(open);
    return new Parts(handle, attempt(() => native.domainId(handle)), tick);
  }

  /**
   * @param {unknown} chosen
   * @param {(clock: Clock | undefined) => Handle} open
   */
  function openWith(chosen, open) {
    const { clock, tick } = toSource(chosen);
    return toParts(() => open(clock), tick);
  }

  /**
   * @param {unknown} config
   * @returns {Parts}
   */
  function openConfig(config) {
    if (typeof config === 'string' || typeof config === 'number') {
      return openConfig({ rate: config });
    }
    if (!isTable(config) || !Object.hasOwn(config, 'clock')) {
      const encoded = encode(config);
      return openWith(undefined, (clock) => native.fromConfig(encoded, clock));
    }
    const { clock: chosen, ...rest } = config;
    const encoded = encode(rest);
    return openWith(chosen, (clock) => native.fromConfig(encoded, clock));
  }

  /**
   * A cost, or undefined.
   * @param {unknown} cost
   */
  function toCost(cost) {
    return cost === undefined ? undefined : toUnits(cost);
  }

  /**
   * @param {unknown} cost
   * @returns {number}
   */
  function toUnits(cost) {
    if (typeof cost === 'number') return cost;
    const shown = describe(cost);
    // Always throws the error, whose message is in core.
    return attempt(() => native.badCost(shown));
  }

  /** @type {(domain: Domain) => Parts} Throws a TypeError for a wrong `this`. */
  let partsOf;

  class Domain {
    /** @type {Parts} */
    #parts;
    /** @type {string[] | undefined} The names of the rules, read when they are first needed. */
    #names;
    /** @param {number} index */
    #nameOf = (index) => (this.#names ??= native.ruleNames(this.#parts.handle))[index];

    static {
      partsOf = (domain) => domain.#parts;
    }

    /** @param {unknown} parts */
    constructor(parts) {
      if (!(parts instanceof Parts)) {
        throw new TypeError('Illegal constructor: a Domain comes from throttle.domain(name)');
      }
      this.#parts = parts;
    }

    get name() {
      const { handle } = this.#parts;
      return attempt(() => native.name(handle));
    }

    /** @returns {DomainRule[]} */
    get rules() {
      const { handle } = this.#parts;
      const limits = attempt(() => native.ruleLimits(handle));
      const windows = attempt(() => native.ruleWindows(handle));
      const names = attempt(() => native.ruleNames(handle));
      return names.map((name, i) => ({ name, limit: limits[i], windowMs: windows[i] }));
    }

    /**
     * @param {Tag} tag
     * @param {number | CheckOptions} [options]
     */
    check(tag, options) {
      return this.#decide(native.check, tag, options);
    }

    /**
     * @param {Tag} tag
     * @param {number | CheckOptions} [options]
     */
    peek(tag, options) {
      return this.#decide(native.peek, tag, options);
    }

    /**
     * @param {Tag} tag
     * @param {number} [cost]
     */
    allow(tag, cost) {
      const { id } = this.#parts.present();
      const who = toTag(tag);
      const units = toCost(cost);
      try {
        // Without the argument, because Node is slow to read undefined.
        return units === undefined ? native.allow(id, who) : native.allow(id, who, units);
      } catch (caught) {
        throw explain(caught);
      }
    }

    /** @param {Iterable<Tag>} tags */
    allowMany(tags) {
      // Checks `this` first, and reads the clock after the caller's iterator has run.
      const parts = this.#parts;
      const all = toTags(tags);
      const { handle } = parts.present();
      return attempt(() => native.allowMany(handle, all));
    }

    /**
     * @param {Tag} tag
     * @param {number} [cost]
     */
    refund(tag, cost) {
      const { handle } = this.#parts.present();
      const who = toTag(tag);
      const units = toCost(cost);
      attempt(() => native.refund(handle, who, units));
    }

    /** @param {Tag} tag */
    reset(tag) {
      const { handle } = this.#parts.present();
      const who = toTag(tag);
      attempt(() => native.reset(handle, who));
    }

    /**
     * @param {Tag} tag
     * @param {number} cost
     * @param {number} [ageMs]
     */
    chargeLocal(tag, cost, ageMs) {
      const { handle } = this.#parts.present();
      const who = toTag(tag);
      const units = toUnits(cost);
      const age = ageMs === undefined ? undefined : toNumber('ageMs', ageMs);
      attempt(() => native.chargeLocal(handle, who, units, age));
    }

    /**
     * @param {Tag} tag
     * @param {number} cost
     */
    charge(tag, cost) {
      const { handle } = this.#parts.present();
      const who = toTag(tag);
      const units = toUnits(cost);
      return attempt(() => native.charge(handle, who, units));
    }

    /**
     * @param {Native['check']} call
     * @param {unknown} tag
     * @param {unknown} options
     */
    #decide(call, tag, options) {
      const { id } = this.#parts.present();
      const who = toTag(tag);
      let units;
      let delay;
      let some;
      let debt;
      if (isTable(options)) {
        const { cost, maxDelayMs, partial, allowDebt } = toOptions(options, CHECK_OPTIONS);
        units = toCost(cost);
        if (maxDelayMs !== undefined) delay = toNumber('maxDelayMs', maxDelayMs);
        if (partial !== undefined) some = toTruth('partial', partial);
        if (allowDebt !== undefined) debt = toTruth('allowDebt', allowDebt);
      } else {
        units = toCost(options);
      }
      try {
        return this.#decision(call(id, who, units, delay, some, debt));
      } catch (caught) {
        throw explain(caught);
      }
    }

    /**
     * @param {ArrayLike<number>} answer
     * @returns {Decision}
     */
    #decision(answer) {
      return toDecision(answer, this.#nameOf);
    }

    /**
     * Opens the native part of HTTP middleware that uses this domain (`api/middleware.js`).
     * @param {Readonly<Record<string, unknown>>} options
     * @param {import('./middleware.js').Setup} setup
     */
    [OPEN](options, setup) {
      const { handle, tick } = this.#parts;
      return toMiddleware(native, options, setup, { clock: undefined, tick }, handle, () => this);
    }
  }

  class Throttle extends Domain {
    /** @param {string | number | ThrottleOptions | Parts} config */
    constructor(config) {
      super(config instanceof Parts ? config : openConfig(config));
    }

    /**
     * @param {string} text
     * @param {FileOptions} [options]
     */
    static fromToml(text, options) {
      const { clock: chosen, table } = toOptions(options, FILE_OPTIONS);
      const toml = toText('text', text);
      const encoded = table === undefined ? undefined : encode(table);
      return toInstance(this, openWith(chosen, (clock) => native.fromToml(toml, clock, encoded)));
    }

    /**
     * @param {string} path
     * @param {FileOptions} [options]
     */
    static fromFile(path, options) {
      const { clock: chosen, table } = toOptions(options, FILE_OPTIONS);
      const file = toText('path', path);
      const encoded = table === undefined ? undefined : encode(table);
      return toInstance(this, openWith(chosen, (clock) => native.fromFile(file, clock, encoded)));
    }

    /**
     * Like the method of domains, for middleware that makes its own throttle.
     * @param {Readonly<Record<string, unknown>>} options
     * @param {import('./middleware.js').Setup} setup
     */
    static [OPEN](options, setup) {
      const source = setup.within ?? toSource(options.clock);
      const toDomain = (/** @type {Handle} */ handle) => new Domain(toParts(() => handle, source.tick));
      return toMiddleware(native, options, setup, source, undefined, toDomain);
    }

    /** @param {string} name */
    domain(name) {
      const { handle, tick } = partsOf(this);
      const text = toText('name', name);
      return new Domain(toParts(() => native.domain(handle, text), tick));
    }

    /** @returns {string | null} */
    get tableName() {
      const { handle } = partsOf(this);
      return attempt(() => native.tableName(handle)) ?? null;
    }

    /** @returns {Stats} */
    stats() {
      const { handle } = partsOf(this).present();
      return toStats(attempt(() => native.stats(handle)));
    }

    start() {
      const { handle } = partsOf(this).present();
      attempt(() => native.start(handle));
    }

    /** @returns {ClusterStats | null} */
    clusterStats() {
      const { handle } = partsOf(this).present();
      return fromJson(attempt(() => native.clusterStats(handle)));
    }

    /**
     * @param {number} [after]
     * @returns {ClusterEvent[]}
     */
    events(after = 0) {
      const { handle } = partsOf(this).present();
      const number = toCount('after', after);
      return fromJson(attempt(() => native.events(handle, number)));
    }

    close() {
      const { handle } = partsOf(this);
      attempt(() => native.close(handle));
    }
  }

  /**
   * Returns a throttle of a class, which may be a subclass. Does not call its constructor, whose arguments are unknown.
   * @param {typeof Throttle} subclass
   * @param {Parts} parts
   * @returns {Throttle}
   */
  function toInstance(subclass, parts) {
    return Object.setPrototypeOf(new Throttle(parts), subclass.prototype);
  }

  extend?.(Throttle.prototype, partsOf);
  return { BusyThrottle, Domain, DthrottleError, ManualClock, Throttle, UNLIMITED };
}

module.exports = { makeApi };
