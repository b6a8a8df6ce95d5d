// Shared by all adapters: selects the requests to limit, calls the application's functions (callbacks.js), and makes
// one native call per request. The policy is in core.
//
// Nothing here throws or rejects during a request. After a failure the request passes, and the failure is counted and
// reported once. The adapters wait (delay.js) and write the response.
'use strict';

const { debuglog } = require('node:util');

const { attempt, explain } = require('../api/errors.js');
const { describe } = require('../api/values.js');
const { encode } = require('../api/encode_config.js');
const { Callbacks, FAILURE, isPromise } = require('./callbacks.js');
const { GIVEN, RateLimitInfo, lazyProperty } = require('./info.js');
const { open, withoutMissing, toPlain, toPropertyName, toRoutes } = require('./options.js');
const { ADDRESS_LENGTH, HAS_FIELDS, HAS_WARNINGS, Outcome, TAG_KIND } = require('./outcome.js');
const { ADDRESS, FAILED, MISSING, UNUSABLE, VALUE, toKind, toTag } = require('./tags.js');
const { Reports } = require('./validate.js');

/** @import { Domain } from '../index.js' */
/** @import { NativeMiddleware } from '../api/middleware.js' */
/** @import { Fn } from './callbacks.js' */
/** @import { Reader } from './reader.js' */

const log = debuglog('dthrottle');

/** The cost of a request where the option is not a function. */
const FIXED = Symbol('fixed');

const COUNT_NAMES = ['passed', 'refused', 'dryRun', 'delayed', 'gaveUp', 'untagged', 'failed'];
/** @type {readonly string[]} */
const NO_VALUES = [];
/** The cost of a request for which the option `cost` failed. With 0, clients would try to make it fail. */
const FALLBACK_COST = 1;

class Middleware {
  #reader;
  /** @type {NativeMiddleware} */
  #opened;
  #id;
  #property;
  #options;
  /** @type {string | null | undefined} The value of the first header field, if it is the same in all responses. */
  #policy;
  /** @type {ReadonlySet<string> | null} */
  #methods;
  #routes;
  #hasExemptAddresses;
  #trustsProxies;
  /** @type {Fn | null} */
  #tagFunction;
  /** @type {string | null} */
  #tagHeader = null;
  #reports;
  #callbacks = new Callbacks((option, error) => this.failed(option, error));
  /** @type {Domain | undefined} */
  #domain;
  /** @type {string[] | undefined} */
  #ruleNames;
  /**
   * Returns the name of a rule.
   * @param {number} index
   */
  #nameOf = (index) => (this.#ruleNames ??= this.domain.rules.map(({ name }) => name))[index];
  /** @type {ArrayLike<number> | null} The final counts after `close`, otherwise null. */
  #finalCounts = null;
  /** The number of requests and refusals that are being delayed. */
  #delayed = 0;

  /**
   * @param {Readonly<Record<string, unknown>>} options
   * @param {Reader} reader
   * @param {object} [setup]
   * @param {string} [setup.namePart] The method and path of its route.
   * @param {Middleware} [setup.within] The middleware whose throttle it shares.
   * @param {boolean} [setup.isComplete] Whether the options are complete, so that `allow` can be checked against `tag`.
   */
  constructor(options, reader, { namePart, within, isComplete = true } = {}) {
    const given = withoutMissing(options);
    this.#options = given;
    this.#reader = reader;
    this.#reports = new Reports(given.validate, given.table === false);
    this.propertyName = toPropertyName(given);
    this.#property = lazyProperty(this.propertyName);
    this.#opened = open(given, { namePart, within: within === undefined ? undefined : within.#opened, isTemplate: !isComplete });
    const { native, handle } = this.#opened;
    this.#routes = toRoutes(given, reader.ignoresCase);
    const methods = native.webMethods(handle);
    this.#methods = methods ? new Set(methods) : null;
    const traits = native.webTraits(handle);
    this.#hasExemptAddresses = traits.includes('exempts');
    this.#trustsProxies = traits.includes('trusts');
    /** Whether responses may refund requests. */
    this.refunds = traits.includes('refunds');
    /** Whether the header fields are lists, to which several throttles may add members. */
    this.isList = traits.includes('isList');
    this.fieldNames = native.webFieldNames(handle);
    this.#policy = native.webPolicy(handle);
    this.#id = native.webId(handle);
    const tag = given.keyGenerator ?? given.tag;
    this.#tagFunction = typeof tag === 'function' ? tag : null;
    if (typeof tag === 'string' && tag.startsWith('header:')) this.#tagHeader = tag.slice('header:'.length).toLowerCase();
    /** @type {Fn | null} */
    this.handler = given.handler ?? null;
    this.domainName = native.webDomainName(handle);
    this.tableName = native.webTableName(handle) ?? undefined;
    log('throttling by domain %j, %s', this.domainName, this.tableName ? `shared in table ${this.tableName}` : 'in a table without a name');
    this.#warn();
  }

  /** Checks that `allow` fits the tags. */
  checkAllow() {
    attempt(() => this.#opened.native.webCheckAllow(this.#opened.handle));
  }

  /**
   * Decides about a request. Returns null if it passes without header fields, and a promise if a function of the
   * application returns one.
   * @param {any} request
   * @param {any} [response] The second argument for functions of the application, if the framework has one.
   * @returns {Outcome | null | Promise<Outcome | null>}
   */
  decide(request, response) {
    try {
      if (this.#finalCounts !== null || !this.#isSelected(request)) return null;
      const { skip } = this.#options;
      if (skip === undefined) return this.#callTagAndCost(request, response);
      const skipped = this.#callbacks.call('skip', skip, request, response);
      // A request is not skipped if the function fails.
      const proceed = (/** @type {unknown} */ isSkipped) =>
        isSkipped && isSkipped !== FAILURE ? null : this.#callTagAndCost(request, response);
      if (!isPromise(skipped)) return proceed(skipped);
      return this.#callbacks.settle('skip', skipped).then(proceed).catch((error) => this.failed('request', error));
    } catch (error) {
      // The framework's request could not be read.
      return this.failed('request', error);
    }
  }

  /**
   * Whether a request is selected by methods, routes and exempt addresses.
   * @param {any} request
   */
  #isSelected(request) {
    const reader = this.#reader;
    if (this.#methods !== null && !this.#methods.has(reader.method(request))) return false;
    if (this.#routes.length > 0) {
      const paths = [...reader.paths(request)];
      if (!this.#routes.some((route) => paths.some((path) => route.test(path)))) return false;
    }
    if (!this.#hasExemptAddresses) return true;
    const { native, handle } = this.#opened;
    return !native.webIsExempt(handle, reader.peer(request), reader.client?.(request), reader.forwardedFor(request));
  }

  /**
   * Calls the functions `tag` and `cost`, and decides.
   * @param {any} request
   * @param {any} response
   */
  #callTagAndCost(request, response) {
    const { cost } = this.#options;
    const value = this.#tagFunction === null ? undefined : this.#callbacks.call('tag', this.#tagFunction, request, response);
    const units = typeof cost === 'function' ? this.#callbacks.call('cost', cost, request, response) : FIXED;
    if (!isPromise(value) && !isPromise(units)) return this.#checkTag(request, value, units);
    const both = Promise.all([this.#callbacks.settle('tag', value), this.#callbacks.settle('cost', units)]);
    return both.then(([tag, settled]) => this.#checkTag(request, tag, settled)).catch((error) => this.failed('request', error));
  }

  /**
   * Finds the kind of the tag, and decides.
   * @param {any} request
   * @param {unknown} value The value that the function `tag` returned.
   * @param {unknown} units
   */
  #checkTag(request, value, units) {
    if (this.#tagFunction === null && this.#tagHeader === null) return this.#decide(request, ADDRESS, undefined, units);
    if (this.#tagFunction === null) {
      const found = this.#reader.header(request, /** @type {string} */ (this.#tagHeader)) || undefined;
      return this.#decide(request, found === undefined ? MISSING : VALUE, found, units);
    }
    if (value === FAILURE) return this.#decide(request, FAILED, undefined, units);
    const tag = toTag(value);
    if (tag === null) return this.#decide(request, UNUSABLE, toKind(value), units);
    // A copy, because the application may change the bytes before a refund.
    return this.#decide(request, VALUE, typeof tag === 'string' ? tag : new Uint8Array(tag), units);
  }

  /**
   * @param {any} request
   * @param {number} kind
   * @param {string | Uint8Array | undefined} tag
   * @param {unknown} units
   */
  #decide(request, kind, tag, units) {
    // The middleware may have been closed while an asynchronous function ran.
    if (this.#finalCounts !== null) return null;
    const reader = this.#reader;
    const { native, tick } = this.#opened;
    const peer = reader.peer(request);
    const isGone = peer === undefined && reader.isGone(request);
    const cost = units === FIXED ? undefined : this.#toCost(units);
    const client = reader.client?.(request);
    const isInspecting = this.#reports.isInspecting;
    // If no proxy is trusted, the header is only needed to find misuse.
    const forwarded = this.#trustsProxies || isInspecting ? reader.forwardedFor(request) : undefined;
    tick?.();
    const text = native.webDecide(this.#id, peer, client, forwarded, kind, tag, cost, isGone);
    const numbers = native.webAnswer;
    if (numbers[HAS_WARNINGS] !== 0) this.#warn();
    if (text === undefined || text === null) return null;
    const end = numbers[ADDRESS_LENGTH];
    const values = numbers[HAS_FIELDS] === 0 ? NO_VALUES : this.#fieldValues(text.slice(end));
    const counted = numbers[TAG_KIND] === GIVEN ? /** @type {string | Uint8Array} */ (tag) : text.slice(0, end);
    const outcome = new Outcome(numbers, this.#nameOf, values, counted);
    if (outcome.delayMs > 0) this.#delayed += 1;
    if (isInspecting) this.#inspect(request, outcome);
    return outcome;
  }

  /**
   * The values of all header fields.
   * @param {string} changing The values that differ between responses, one per line.
   */
  #fieldValues(changing) {
    const policy = this.#policy;
    if (policy === undefined || policy === null) return changing.split('\n');
    // The usual case needs no split.
    return this.fieldNames.length === 2 ? [policy, changing] : [policy, ...changing.split('\n')];
  }

  /**
   * Looks for misuse in one of the first requests.
   * @param {any} request
   * @param {Outcome} outcome
   */
  #inspect(request, { tagKind, tag }) {
    const table = this.tableName ?? this.#options.throttle ?? this;
    this.#reports.counted(request, table, this.domainName, `${tagKind} ${tag}`);
    if (this.#tagFunction === null && !this.#trustsProxies) this.#reports.misuse('trustProxy', this.#reader.trustProxy?.(request));
  }

  /**
   * @param {unknown} cost
   * @returns {number}
   */
  #toCost(cost) {
    if (cost === FAILURE) return FALLBACK_COST;
    if (Number.isSafeInteger(cost) && Number(cost) >= 0) return Number(cost);
    this.failed('cost', new RangeError(`must be a whole number, 0 or more, got ${describe(cost)}`));
    return FALLBACK_COST;
  }

  /**
   * The information about a request for the application.
   * @param {Outcome} outcome
   */
  info(outcome) {
    return new RateLimitInfo(outcome, this.#opened.native);
  }

  /**
   * Makes this information available at a request of Express, where it is created on first access. Returns false if
   * the request needs an ordinary property.
   * @param {object} request
   * @param {Outcome} outcome
   */
  setInfoLazily(request, outcome) {
    return this.#property.keep(request, outcome, this.#opened.native);
  }

  /**
   * Calls the application's `onRefused` if a rule refused the request, also in dry run.
   * @param {Outcome} outcome
   * @param {any} request
   * @param {any} [response]
   */
  callOnRefused({ decision }, request, response) {
    const { onRefused } = this.#options;
    if (onRefused === undefined || decision.rule === null) return;
    const result = this.#callbacks.call('onRefused', onRefused, request, response, decision);
    if (isPromise(result)) this.#callbacks.settle('onRefused', result);
  }

  /**
   * Ends the delay of a request or of a refusal. A request whose client has left is refunded.
   * @param {Outcome} outcome
   * @param {boolean} isGone Whether the client has left.
   */
  endDelay({ tagKind, tag, taken, refused }, isGone) {
    const givesUp = isGone && !refused && this.#finalCounts === null;
    this.#act('refund', ({ native, handle }) => native.webEndDelay(handle, tagKind, tag, taken, givesUp));
    this.#delayed -= 1;
    if (this.#finalCounts !== null) this.#closeNative();
  }

  /**
   * Refunds a request after its response, if the options say so.
   * @param {Outcome} outcome
   * @param {boolean} hasGoodStatus The success of the request, unless there is a function `requestWasSuccessful`.
   * @param {any} request
   * @param {any} [response]
   */
  finish({ tagKind, tag, taken }, hasGoodStatus, request, response) {
    const end = (/** @type {unknown} */ result) => {
      const isSuccess = result !== FAILURE && Boolean(result);
      if (this.#finalCounts !== null) return;
      this.#act('refund', ({ native, handle }) => native.webFinish(handle, tagKind, tag, taken, isSuccess));
    };
    const { requestWasSuccessful: fn } = this.#options;
    const result = fn === undefined ? hasGoodStatus : this.#callbacks.call('requestWasSuccessful', fn, request, response);
    if (isPromise(result)) this.#callbacks.settle('requestWasSuccessful', result).then(end);
    else end(result);
  }

  /**
   * The response to a refused request, or a promise of it if the option `body` is an asynchronous function.
   * @param {Outcome} outcome
   * @param {any} request
   * @param {any} [response]
   */
  refusal(outcome, request, response) {
    const { body } = this.#options;
    if (typeof body !== 'function') return this.#refusal(outcome, undefined);
    const given = this.#callbacks.call('body', body, request, response, outcome.decision);
    if (!isPromise(given)) return this.#refusal(outcome, given);
    return this.#callbacks.settle('body', given).then((settled) => this.#refusal(outcome, settled));
  }

  /**
   * @param {Outcome} outcome
   * @param {unknown} given The value that the function `body` returned.
   */
  #refusal({ values, rule, decision }, given) {
    const { native, handle } = this.#opened;
    const { body: option } = this.#options;
    /** Whether the body is the default one. */
    let isDefault = true;
    const refuse = (/** @type {unknown} */ value) => {
      const encoded = value === undefined || value === null || value === FAILURE ? undefined : encode(toPlain(value));
      isDefault = encoded === undefined && (option === undefined || typeof option === 'function');
      return attempt(() => native.webRefusal(handle, encoded, rule, decision.retryAfterMs));
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
    return { status: Number(status), names, values: [...own, ...values], body, isDefault };
  }

  /**
   * The header fields of a refusal that do not depend on its body, and the argument `refused` for the application's
   * `handler`.
   * @param {Outcome} outcome
   */
  refused(outcome) {
    const { status, names, values } = this.#refusal(outcome, undefined);
    const { body } = this.#options;
    return { names: names.slice(2), values: values.slice(2), refused: { status, body, decision: outcome.decision } };
  }

  /**
   * Counts an error. The first one of each cause is reported.
   * @param {string} cause
   * @param {unknown} error
   */
  failed(cause, error) {
    if (this.#finalCounts === null) this.#opened.native.webCountFailure(this.#opened.handle);
    this.#reports.failed(cause, error);
    return null;
  }

  /** @returns {Domain} */
  get domain() {
    return (this.#domain ??= this.#opened.domain());
  }

  /** The counts of this process. Each property is read on access. */
  get counts() {
    const counts = {};
    COUNT_NAMES.forEach((name, i) => Object.defineProperty(counts, name, { enumerable: true, get: () => this.#counts()[i] }));
    return counts;
  }

  #counts() {
    return this.#finalCounts ?? this.#opened.native.webCounts(this.#opened.handle);
  }

  /**
   * Fills the buckets of a tag. An address, in any spelling, also fills those of the client with this address.
   * @param {string | number | bigint | Uint8Array} tag
   */
  reset(tag) {
    const { native, handle, tick } = this.#opened;
    tick?.();
    const usable = toTag(tag);
    // The domain throws the error about an unusable tag.
    if (usable === null) this.domain.reset(/** @type {any} */ (tag));
    else attempt(() => native.webReset(handle, usable));
  }

  /** Lets all requests pass. A throttle that was made for middleware is closed with the last middleware that uses it. */
  close() {
    if (this.#finalCounts !== null) return;
    this.#finalCounts = this.#counts();
    this.#closeNative();
  }

  /** Closes the native part, unless it still delays a request. */
  #closeNative() {
    if (this.#delayed === 0) this.#opened.native.webClose(this.#opened.handle);
  }

  /**
   * Makes a native call. An error is counted and reported.
   * @param {string} cause
   * @param {(own: NativeMiddleware) => void} call
   */
  #act(cause, call) {
    try {
      this.#opened.tick?.();
      call(this.#opened);
      this.#warn();
    } catch (error) {
      this.failed(cause, explain(error));
    }
  }

  #warn() {
    const texts = this.#opened.native.webWarnings(this.#opened.handle);
    for (let i = 0; i < texts.length; i += 2) this.#reports.warn(texts[i], texts[i + 1]);
  }
}

exports.Middleware = Middleware;
