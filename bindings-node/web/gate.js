// What all frameworks have in common: which requests are asked about, what is answered, what goes
// wrong.
//
// A gate never blocks and never throws during a request. Whoever has it does the waiting (hold.js).
// Whatever goes wrong lets the request pass, is counted (`counts`), and is reported once.
'use strict';

const { debuglog } = require('node:util');

const { ask } = require('../face/quick.js');
const { describe } = require('../face/values.js');
const { Answers } = require('./answers.js');
const { COST, isPromise } = require('./functions.js');
const { toDigits } = require('./options.js');
const { KeptTags, UNKNOWN, addressTag, toTag } = require('./tags.js');
const { Verdict } = require('./verdict.js');
const { Watch } = require('./watch.js');

/** @import { Settings } from './options.js' */

/**
 * @typedef {object} Reader How to read a request of some kind.
 * @property {(request: any) => string} method In capitals.
 * @property {(request: any) => ReadonlySet<string>} paths The whole path, in all its spellings, without the query.
 * @property {boolean} [ignoresCase] Whether /LOGIN may lead to the handler of /login.
 * @property {(request: any, name: string) => string | undefined} header By its name in small letters.
 * @property {(request: any) => string | undefined} peer Whoever opened the connection.
 * @property {(request: any) => string | undefined} client As the framework finds it, by its own rules.
 * @property {(request: any) => boolean} isGone Whether its connection is closed, and its address forgotten.
 * @property {(request: any) => string | undefined} forwardedFor The header X-Forwarded-For.
 * @property {(request: any) => string | undefined} [trustProxy] What is wrong with these rules.
 */

const log = debuglog('dthrottle');

const MOST_DEBT = 2 ** 40;
const BAD_TAG = 'tag must return text (not empty, valid Unicode), bytes or a whole number';
const HINT = '(behind a proxy on a Unix socket, set trustedProxies)';
const NO_ADDRESS = `the address of a client is unknown, and its requests pass ${HINT}`;
const ONE_BUCKET = `clients without a tag and a known address are counted together ${HINT}`;

/** Decides about requests. */
class Gate extends Answers {
  #reader;
  /** @type {readonly RegExp[]} */
  #routes;
  /** Whether there are requests that are not asked about, whatever functions say. */
  #selects;
  #largest;
  #kept;
  #watch;

  /**
   * @param {Settings} settings
   * @param {Reader} reader
   */
  constructor(settings, reader) {
    super(settings);
    const { least, name, table } = settings.opened;
    this.#reader = reader;
    this.#largest = least;
    const { ignoresCase } = reader;
    this.#routes = settings.routes.map((route) => (ignoresCase && !route.ignoreCase ? new RegExp(route, `${route.flags}i`) : route));
    this.#selects = settings.methods !== null || this.#routes.length > 0 || settings.allowNetworks !== null;
    this.#kept = new KeptTags(settings.address);
    this.#watch = new Watch(settings, reader);
    log('throttling by domain %j, %s', name, table ? `shared in table ${table}` : 'in the table that its throttle has');
  }

  /**
   * Asks about a request, which functions of the application are given with its companion, if it
   * has one. Null: it passes, and nothing is to be said about it. A promise of that where such a
   * function gives a promise; it is never rejected.
   * @param {any} request
   * @param {any} [companion]
   * @returns {Verdict | null | Promise<Verdict | null>}
   */
  ask(request, companion) {
    try {
      return this.#ask(request, companion);
    } catch (error) {
      // Something that the framework tells about the request.
      this.failed('request', error);
      return null;
    }
  }

  /**
   * @param {any} request
   * @param {any} companion
   */
  #ask(request, companion) {
    if (this.closed || (this.#selects && !this.#concerns(request))) return null;
    const { skip } = this.settings;
    if (skip !== null) {
      const skipped = this.call('skip', skip, request, companion);
      if (isPromise(skipped)) return this.#askLater(skipped, request, companion);
      if (skipped) return null;
    }
    const tag = this.#tag(request, companion);
    const cost = this.#cost(request, companion);
    if (isPromise(tag) || isPromise(cost)) return this.#askWith(tag, cost, request);
    return this.#decide(tag, cost, request);
  }

  /**
   * @param {Promise<unknown>} skipped
   * @param {any} request
   * @param {any} companion
   */
  async #askLater(skipped, request, companion) {
    if (await this.settle('skip', skipped)) return null;
    try {
      return await this.#askWith(this.#tag(request, companion), this.#cost(request, companion), request);
    } catch (error) {
      this.failed('request', error);
      return null;
    }
  }

  /**
   * @param {unknown} tag
   * @param {unknown} cost
   * @param {any} request
   */
  async #askWith(tag, cost, request) {
    const [who, units] = await Promise.all([this.settle('tag', tag), this.settle('cost', cost)]);
    return this.#decide(who, units, request);
  }

  /**
   * Whether a request is to be throttled, as far as it does not depend on functions.
   * @param {any} request
   */
  #concerns(request) {
    const { methods, allowNetworks, address } = this.settings;
    if (methods !== null && !methods.has(this.#reader.method(request))) return false;
    if (this.#routes.length > 0) {
      const paths = [...this.#reader.paths(request)];
      if (!this.#routes.some((route) => paths.some((path) => route.test(path)))) return false;
    }
    if (allowNetworks !== null) {
      const found = address.find(this.#peer(request), this.#reader.forwardedFor(request));
      return found === null || !allowNetworks.has(found);
    }
    return true;
  }

  /**
   * Who the client is by the framework's rules, unless there are rules of ours.
   * @param {any} request
   */
  #peer(request) {
    return this.settings.trusts ? this.#reader.peer(request) : this.#reader.client(request);
  }

  /**
   * The value of the option `tag` for a request, or a promise of it.
   * @param {any} request
   * @param {any} companion
   * @returns {unknown}
   */
  #tag(request, companion) {
    const { tag, header } = this.settings;
    if (tag !== null) return this.call('tag', tag, request, companion);
    if (header !== null) return this.#reader.header(request, header) || this.#byAddress(request);
    return this.#address(request) ?? (this.#reader.isGone(request) ? UNKNOWN : null);
  }

  /** @param {any} request */
  #address(request) {
    const { address, trusts } = this.settings;
    if (trusts) return address.tag(this.#reader.peer(request), this.#reader.forwardedFor(request));
    // What a framework took for an address may be none: its proxy answers for it.
    return this.#kept.of(this.#reader.client(request)) ?? this.#kept.of(this.#reader.peer(request));
  }

  /**
   * The tag of a client that has no usable tag of its own.
   * @param {any} request
   */
  #byAddress(request) {
    const address = this.#address(request);
    if (address !== null) return addressTag(address);
    // To let these requests pass would let clients choose to pass.
    if (!this.#reader.isGone(request)) this.settings.reports.failure('DTHROTTLE_NO_TAG', 'address', ONE_BUCKET);
    return UNKNOWN;
  }

  /**
   * The tag of a request for which a value cannot be one; null: the request passes.
   * @param {any} request
   * @param {unknown} value
   */
  #untagged(request, value) {
    const { tag, header, reports } = this.settings;
    this.counts.untagged += 1;
    if (tag === null && header === null) {
      reports.failure('DTHROTTLE_NO_TAG', 'address', NO_ADDRESS);
      return null;
    }
    // Not the text itself: clients choose it.
    const got = typeof value === 'string' ? 'other text' : describe(value);
    reports.failure('DTHROTTLE_NO_TAG', 'tag', `${BAD_TAG}, got ${got}; the client's address is counted`);
    return this.#byAddress(request);
  }

  /**
   * Fills the buckets of a tag; and where it is an address, in any spelling, those of the client that
   * is counted by it.
   * @param {string | number | bigint | Uint8Array} tag
   */
  reset(tag) {
    const { tag: fn, header, address } = this.settings;
    const who = toTag(tag) ?? /** @type {string | Uint8Array} */ (tag);
    this.domain.reset(who);
    const found = typeof who === 'string' ? address.tag(who) : null;
    if (found !== null) this.domain.reset(fn === null && header === null ? found : addressTag(found));
  }

  /**
   * @param {any} request
   * @param {any} companion
   * @returns {unknown}
   */
  #cost(request, companion) {
    const { cost } = this.settings;
    return typeof cost === 'number' ? cost : this.call('cost', cost, request, companion);
  }

  /**
   * Decides about a request. A value that cannot be a tag is replaced by the client's address: clients
   * can often choose its type.
   * @param {unknown} value
   * @param {unknown} cost
   * @param {any} request
   * @returns {Verdict | null}
   */
  #decide(value, cost, request) {
    try {
      const { allowTags, dryRun } = this.settings;
      const given = toTag(value);
      const tag = given ?? this.#untagged(request, value);
      if (tag === null) return null;
      if (this.#watch.watching) this.#watch.look(request, tag);
      if (allowTags.size > 0 && allowTags.has(toDigits(tag))) return null;
      const units = this.#units(cost);
      const beyond = units > this.#largest ? units - this.#largest : 0;
      const answer = this.#check(tag, units, beyond);
      const refused = !answer.allowed && !dryRun;
      if (refused) this.counts.refused += 1;
      else if (answer.rule !== null || answer.dryRun) this.counts.dryRun += 1;
      else this.counts.passed += 1;
      const taken = answer.granted > 0 ? answer.granted + beyond : 0;
      const fields = this.headers.fields(answer);
      const verdict = new Verdict(answer, fields, tag, this.settings.tag === null || given === null, taken, refused);
      // Nothing can go wrong from here to where it is held (hold.js), which leaves again.
      if (answer.waitMs > 0) this.enter();
      return verdict;
    } catch (error) {
      this.failed('check', error);
      return null;
    }
  }

  /**
   * @param {string | Uint8Array} tag
   * @param {number} units
   * @param {number} beyond How much of that the bucket cannot hold: it passes when the bucket is
   *   full, and takes it into debt.
   * @returns {import('../face/quick.js').Answer}
   */
  #check(tag, units, beyond) {
    const { maxDelayMs, dryRun } = this.settings;
    const { domain } = this;
    const cost = units - beyond;
    const maxWaitMs = maxDelayMs > 0 && !dryRun && this.hasRoom ? maxDelayMs : 0;
    const answer = ask(domain, tag, cost, maxWaitMs);
    if (beyond > 0 && answer.granted > 0) domain.charge(tag, Math.min(beyond, MOST_DEBT));
    return answer;
  }

  /**
   * @param {any} cost
   * @returns {any}
   */
  #units(cost) {
    if (Number.isSafeInteger(cost) && cost >= 0) return cost;
    this.failed('cost', new RangeError(`${describe(cost)} cannot be; must be a whole number, and not negative`));
    return COST;
  }
}

exports.Gate = Gate;
exports.isPromise = isPromise;
