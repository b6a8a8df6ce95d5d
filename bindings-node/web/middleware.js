// What all adapters share: selects the requests to throttle, calls the application's functions
// (callbacks.js), and makes one native call for each request. The policy is in core.
//
// Nothing here throws or rejects during a request. If something fails, the request passes, and the failure
// is counted and reported once. The adapters wait (delay.js) and write the response.
'use strict';

const { debuglog } = require('node:util');

const { attempt, explain } = require('../api/errors.js');
const { describe } = require('../api/values.js');
const { encode } = require('../api/encode_config.js');
const { Callbacks, FAILURE, isPromise } = require('./callbacks.js');
const { GIVEN, RateLimitInfo, lazyProperty } = require('./info.js');
const { open, present, toPlain, toPropertyName, toRoutes } = require('./options.js');
const { ADDRESS_LENGTH, HAS_FIELDS, HAS_WARNINGS, Outcome, TAG_KIND } = require('./outcome.js');
const { ADDRESS, FAILED, MISSING, UNUSABLE, VALUE, toKind, toTag } = require('./tags.js');
const { Reports } = require('./validate.js');

/** @import { Domain } from '../index.js' */
/** @import { NativeMiddleware } from '../api/middleware.js' */
/** @import { Fn } from './callbacks.js' */

/**
 * @typedef {object} Reader How to read a request of some kind.
 * @property {(request: any) => string} method In capitals.
 * @property {(request: any) => ReadonlySet<string>} paths The whole path, in all its spellings, without the query.
 * @property {boolean} [ignoresCase] Whether /LOGIN may lead to the handler of /login.
 * @property {(request: any, name: string) => string | undefined} header By its name in small letters.
 * @property {(request: any) => string | undefined} peer The address at the other end of the connection.
 * @property {(request: any) => string | undefined} [client] As the framework finds it by its own rules; undefined: the peer.
 * @property {(request: any) => boolean} isGone Whether its connection is closed, and its address forgotten.
 * @property {(request: any) => string | undefined} forwardedFor The header X-Forwarded-For.
 * @property {(request: any) => string | undefined} [trustProxy] What is wrong with these rules.
 */

const log = debuglog('dthrottle');

/** The cost of a request where the option is not a function. */
const FIXED = Symbol('fixed');

const COUNTS = ['passed', 'refused', 'dryRun', 'delayed', 'gaveUp', 'untagged', 'failed'];
/** @type {readonly string[]} */
const NONE = [];
/** What a request costs whose cost is unknown: if that were 0, clients would try to get there. */
const COST = 1;

class Middleware {
  #reader;
  /** @type {NativeMiddleware} */
  #own;
  #id;
  #property;
  #given;
  /** @type {string | null | undefined} The value of the first field where it is always the same. */
  #policy;
  /** @type {ReadonlySet<string> | null} */
  #methods;
  #routes;
  #exempts;
  #trusts;
  /** @type {Fn | null} */
  #tag;
  /** @type {string | null} */
  #header = null;
  #reports;
  #callbacks = new Callbacks((option, error) => this.failed(option, error));
  /** @type {Domain | undefined} */
  #domain;
  /** @type {string[] | undefined} */
  #rules;
  /**
   * The name of a rule.
   * @param {number} index
   */
  #nameOf = (index) => (this.#rules ??= this.domain.rules.map(({ name }) => name))[index];
  /** @type {ArrayLike<number> | null} The counts at the end; null: it is not closed. */
  #ended = null;
  /** How many requests it delays. */
  #delayed = 0;

  /**
   * @param {Readonly<Record<string, unknown>>} options
   * @param {Reader} reader
   * @param {object} [setup]
   * @param {string} [setup.place]
   * @param {Middleware} [setup.within] Counts with this one.
   * @param {boolean} [setup.isComplete] Whether nobody else gives it a tag.
   */
  constructor(options, reader, { place, within, isComplete = true } = {}) {
    const given = present(options);
    this.#given = given;
    this.#reader = reader;
    this.#reports = new Reports(given.validate, given.table === false);
    this.propertyName = toPropertyName(given);
    this.#property = lazyProperty(this.propertyName);
    this.#own = open(given, { place, within: within === undefined ? undefined : within.#own, isTemplate: !isComplete });
    const { native, handle } = this.#own;
    this.#routes = toRoutes(given, reader.ignoresCase);
    const methods = native.webMethods(handle);
    this.#methods = methods ? new Set(methods) : null;
    const traits = native.webTraits(handle);
    this.#exempts = traits.includes('exempts');
    this.#trusts = traits.includes('trusts');
    /** Whether a request may have to be paid back after its response. */
    this.refunds = traits.includes('refunds');
    /** Whether fields of several throttles may stand in one response. */
    this.isList = traits.includes('isList');
    this.fieldNames = native.webFieldNames(handle);
    this.#policy = native.webPolicy(handle);
    this.#id = native.webId(handle);
    const tag = given.keyGenerator ?? given.tag;
    this.#tag = typeof tag === 'function' ? tag : null;
    if (typeof tag === 'string' && tag.startsWith('header:')) this.#header = tag.slice('header:'.length).toLowerCase();
    /** @type {Fn | null} */
    this.handler = given.handler ?? null;
    this.domainName = native.webDomainName(handle);
    this.tableName = native.webTableName(handle) ?? undefined;
    log('throttling by domain %j, %s', this.domainName, this.tableName ? `shared in table ${this.tableName}` : 'in a table without a name');
    this.#warn();
  }

  /** Checks that `allow` fits the tags. */
  checkAllow() {
    attempt(() => this.#own.native.webCheckAllow(this.#own.handle));
  }

  /**
   * Decides about a request; functions of the application get it with its companion, if it has one.
   * Null: it passes, and nothing is to be said about it. A promise of that where such a function gives a
   * promise.
   * @param {any} request
   * @param {any} [companion]
   * @returns {Outcome | null | Promise<Outcome | null>}
   */
  decide(request, companion) {
    try {
      if (this.#ended !== null || !this.#concerns(request)) return null;
      const { skip } = this.#given;
      if (skip === undefined) return this.#ask(request, companion);
      const skipped = this.#callbacks.call('skip', skip, request, companion);
      // A request is not skipped if the function fails.
      const go = (/** @type {unknown} */ isSkipped) => (isSkipped && isSkipped !== FAILURE ? null : this.#ask(request, companion));
      if (!isPromise(skipped)) return go(skipped);
      return this.#callbacks.settle('skip', skipped).then(go).catch((error) => this.failed('request', error));
    } catch (error) {
      // Something that the framework tells about the request.
      return this.failed('request', error);
    }
  }

  /**
   * Whether a request is to be throttled, as far as it does not depend on functions.
   * @param {any} request
   */
  #concerns(request) {
    const reader = this.#reader;
    if (this.#methods !== null && !this.#methods.has(reader.method(request))) return false;
    if (this.#routes.length > 0) {
      const paths = [...reader.paths(request)];
      if (!this.#routes.some((route) => paths.some((path) => route.test(path)))) return false;
    }
    if (!this.#exempts) return true;
    const { native, handle } = this.#own;
    return !native.webIsExempt(handle, reader.peer(request), reader.client?.(request), reader.forwardedFor(request));
  }

  /**
   * @param {any} request
   * @param {any} companion
   */
  #ask(request, companion) {
    const { cost } = this.#given;
    const value = this.#tag === null ? undefined : this.#callbacks.call('tag', this.#tag, request, companion);
    const units = typeof cost === 'function' ? this.#callbacks.call('cost', cost, request, companion) : FIXED;
    if (!isPromise(value) && !isPromise(units)) return this.#check(request, value, units);
    const both = Promise.all([this.#callbacks.settle('tag', value), this.#callbacks.settle('cost', units)]);
    return both.then(([who, most]) => this.#check(request, who, most)).catch((error) => this.failed('request', error));
  }

  /**
   * @param {any} request
   * @param {unknown} value What the function `tag` gave.
   * @param {unknown} units
   */
  #check(request, value, units) {
    if (this.#tag === null && this.#header === null) return this.#decide(request, ADDRESS, undefined, units);
    if (this.#tag === null) {
      const found = this.#reader.header(request, /** @type {string} */ (this.#header)) || undefined;
      return this.#decide(request, found === undefined ? MISSING : VALUE, found, units);
    }
    if (value === FAILURE) return this.#decide(request, FAILED, undefined, units);
    const tag = toTag(value);
    if (tag === null) return this.#decide(request, UNUSABLE, toKind(value), units);
    // A copy: the application may change its bytes before a refund.
    return this.#decide(request, VALUE, typeof tag === 'string' ? tag : new Uint8Array(tag), units);
  }

  /**
   * @param {any} request
   * @param {number} kind
   * @param {string | Uint8Array | undefined} tag
   * @param {unknown} units
   */
  #decide(request, kind, tag, units) {
    // An asynchronous function may come back after the end.
    if (this.#ended !== null) return null;
    const reader = this.#reader;
    const { native, tick } = this.#own;
    const peer = reader.peer(request);
    const isGone = peer === undefined && reader.isGone(request);
    const cost = units === FIXED ? undefined : this.#units(units);
    const client = reader.client?.(request);
    // The header can only tell of misuse where no proxy is trusted.
    const isWatching = this.#reports.isWatching;
    const forwarded = this.#trusts || isWatching ? reader.forwardedFor(request) : undefined;
    tick?.();
    const text = native.webDecide(this.#id, peer, client, forwarded, kind, tag, cost, isGone);
    const numbers = native.webAnswer;
    if (numbers[HAS_WARNINGS] !== 0) this.#warn();
    if (text === undefined || text === null) return null;
    const end = numbers[ADDRESS_LENGTH];
    const values = numbers[HAS_FIELDS] === 0 ? NONE : this.#values(text.slice(end));
    const who = numbers[TAG_KIND] === GIVEN ? /** @type {string | Uint8Array} */ (tag) : text.slice(0, end);
    const outcome = new Outcome(numbers, this.#nameOf, values, who);
    if (outcome.delayMs > 0) this.#delayed += 1;
    if (isWatching) this.#watch(request, outcome);
    return outcome;
  }

  /**
   * The values of all fields.
   * @param {string} changing Those that are not the same in all responses.
   */
  #values(changing) {
    const policy = this.#policy;
    if (policy === undefined || policy === null) return changing.split('\n');
    // Nearly always there are two.
    return this.fieldNames.length === 2 ? [policy, changing] : [policy, ...changing.split('\n')];
  }

  /**
   * Looks for misuse in the first requests.
   * @param {any} request
   * @param {Outcome} outcome
   */
  #watch(request, { tagKind, tag }) {
    const place = this.tableName ?? this.#given.throttle ?? this;
    this.#reports.counted(request, place, this.domainName, `${tagKind} ${tag}`);
    if (this.#tag === null && !this.#trusts) this.#reports.misuse('trustProxy', this.#reader.trustProxy?.(request));
  }

  /**
   * @param {unknown} cost
   * @returns {number}
   */
  #units(cost) {
    if (cost === FAILURE) return COST;
    if (Number.isSafeInteger(cost) && Number(cost) >= 0) return Number(cost);
    this.failed('cost', new RangeError(`must be a whole number, 0 or more, got ${describe(cost)}`));
    return COST;
  }

  // What becomes of a request.

  /**
   * What the application finds at its request.
   * @param {Outcome} outcome
   */
  info(outcome) {
    return new RateLimitInfo(outcome, this.#own.native);
  }

  /**
   * Has a request of Express show that when it is looked at.
   * @param {object} request
   * @param {Outcome} outcome
   * @returns {boolean} Whether it does; other requests need a property of their own.
   */
  informLazily(request, outcome) {
    return this.#property.keep(request, outcome, this.#own.native);
  }

  /**
   * Tells the application of a refusal, also of one in dry run.
   * @param {Outcome} outcome
   * @param {any} request
   * @param {any} [companion]
   */
  tell({ decision }, request, companion) {
    const { onRefused } = this.#given;
    if (onRefused === undefined || decision.rule === null) return;
    const told = this.#callbacks.call('onRefused', onRefused, request, companion, decision);
    if (isPromise(told)) this.#callbacks.settle('onRefused', told);
  }

  /**
   * A request, or its refusal, is delayed no longer.
   * @param {Outcome} outcome
   * @param {boolean} isGone Whether the client of a request has left.
   */
  endDelay({ tagKind, tag, taken, refused }, isGone) {
    const givesUp = isGone && !refused && this.#ended === null;
    this.#act('refund', ({ native, handle }) => native.webEndDelay(handle, tagKind, tag, taken, givesUp));
    this.#delayed -= 1;
    if (this.#ended !== null) this.#end();
  }

  /**
   * The response to a request has ended.
   * @param {Outcome} outcome
   * @param {boolean} successful By its status; `requestWasSuccessful` decides otherwise.
   * @param {any} request
   * @param {any} [companion]
   */
  finish({ tagKind, tag, taken }, successful, request, companion) {
    const end = (/** @type {unknown} */ good) => {
      const isSuccess = good !== FAILURE && Boolean(good);
      if (this.#ended !== null) return;
      this.#act('refund', ({ native, handle }) => native.webFinish(handle, tagKind, tag, taken, isSuccess));
    };
    const { requestWasSuccessful: fn } = this.#given;
    const good = fn === undefined ? successful : this.#callbacks.call('requestWasSuccessful', fn, request, companion);
    if (isPromise(good)) this.#callbacks.settle('requestWasSuccessful', good).then(end);
    else end(good);
  }

  /**
   * The response to a refused request, or a promise of it where a function says what its body is.
   * @param {Outcome} outcome
   * @param {any} request
   * @param {any} [companion]
   */
  refusal(outcome, request, companion) {
    const { body } = this.#given;
    if (typeof body !== 'function') return this.#refusal(outcome, undefined);
    const said = this.#callbacks.call('body', body, request, companion, outcome.decision);
    if (!isPromise(said)) return this.#refusal(outcome, said);
    return this.#callbacks.settle('body', said).then((settled) => this.#refusal(outcome, settled));
  }

  /**
   * @param {Outcome} outcome
   * @param {unknown} given
   */
  #refusal({ values, rule, decision }, given) {
    const { native, handle } = this.#own;
    const { body: option } = this.#given;
    /** Whether the application gives no body. */
    let isUsual = true;
    const refuse = (/** @type {unknown} */ said) => {
      const words = said === undefined || said === null || said === FAILURE ? undefined : encode(toPlain(said));
      isUsual = words === undefined && (option === undefined || typeof option === 'function');
      return attempt(() => native.webRefusal(handle, words, rule, decision.retryAfterMs));
    };
    let made;
    try {
      made = refuse(given);
    } catch (error) {
      this.failed('body', error);
      made = refuse(undefined);
    }
    const [body, [status, ...own]] = made;
    const names = [...['content-type', 'content-length', 'retry-after'].slice(0, own.length), ...this.fieldNames];
    return { status: Number(status), names, values: [...own, ...values], body, isUsual };
  }

  /**
   * The fields of a refusal that do not depend on its body, and what a `handler` of the application gets.
   * @param {Outcome} outcome
   */
  refused(outcome) {
    const { status, names, values } = this.#refusal(outcome, undefined);
    const { body } = this.#given;
    return { names: names.slice(2), values: values.slice(2), refused: { status, body, decision: outcome.decision } };
  }

  /**
   * Counts an error, and reports the first of each cause.
   * @param {string} cause
   * @param {unknown} error
   */
  failed(cause, error) {
    if (this.#ended === null) this.#own.native.webCountFailure(this.#own.handle);
    this.#reports.failed(cause, error);
    return null;
  }

  // What the application may ask.

  /** @returns {Domain} */
  get domain() {
    return (this.#domain ??= this.#own.domain());
  }

  /** What happened in this process, at the time of the look. */
  get counts() {
    const counts = {};
    COUNTS.forEach((name, i) => Object.defineProperty(counts, name, { enumerable: true, get: () => this.#counts()[i] }));
    return counts;
  }

  #counts() {
    return this.#ended ?? this.#own.native.webCounts(this.#own.handle);
  }

  /**
   * Fills the buckets of a tag; and where it is an address, in any spelling, those of the client that is
   * counted by it.
   * @param {string | number | bigint | Uint8Array} tag
   */
  reset(tag) {
    const { native, handle, tick } = this.#own;
    tick?.();
    const who = toTag(tag);
    // What cannot be a tag is for the domain to say.
    if (who === null) this.domain.reset(/** @type {any} */ (tag));
    else attempt(() => native.webReset(handle, who));
  }

  /** Lets all requests pass. A throttle that was made for it ends with the last middleware that has it. */
  close() {
    if (this.#ended !== null) return;
    this.#ended = this.#counts();
    this.#end();
  }

  /** Ends the native part, once it delays no request. */
  #end() {
    if (this.#delayed === 0) this.#own.native.webClose(this.#own.handle);
  }

  /**
   * @param {string} cause
   * @param {(own: NativeMiddleware) => void} act
   */
  #act(cause, act) {
    try {
      this.#own.tick?.();
      act(this.#own);
      this.#warn();
    } catch (error) {
      this.failed(cause, explain(error));
    }
  }

  #warn() {
    const texts = this.#own.native.webWarnings(this.#own.handle);
    for (let i = 0; i < texts.length; i += 2) this.#reports.warn(texts[i], texts[i + 1]);
  }
}

exports.Middleware = Middleware;
