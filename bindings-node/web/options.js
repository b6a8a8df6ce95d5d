// The options of all middleware, checked once, when it is made.
//
// docs/node.md explains them. What is wrong is a DTHROTTLE_CONFIG error that names the option and
// what would be right; nothing about options is left to go wrong during a request.
'use strict';

const { createHash } = require('node:crypto');
const { IncomingMessage } = require('node:http');
const { Socket } = require('node:net');

const { describe, isBytes, isTable } = require('../face/values.js');
const { ClientAddress } = require('./address.js');
const { KINDS, STANDARD } = require('./headers.js');
const { known, meant, misuse, wrong } = require('./near.js');
const { Networks } = require('./networks.js');
const { SOURCES, openSource } = require('./source.js');
const { CHECKS, Reports } = require('./validate.js');

/** @import { Opened } from './opened.js' */

/** @typedef {(...given: any[]) => any} Fn A function of the application. */

/**
 * @typedef {object} Settings The options, checked and ready to use.
 * @property {Opened} opened
 * @property {Reports} reports
 * @property {Fn | null} tag Null: by header or address.
 * @property {string | null} header
 * @property {ClientAddress} address
 * @property {boolean} trusts Whether the application said whose X-Forwarded-For to believe.
 * @property {number | Fn} cost
 * @property {ReadonlySet<string> | null} methods
 * @property {readonly RegExp[]} routes
 * @property {Fn | null} skip
 * @property {Networks | null} allowNetworks
 * @property {ReadonlySet<string>} allowTags As the digits of their bytes.
 * @property {string | null} allowMisfit Text that was to be allowed, and is nobody's address, where tags are addresses.
 * @property {boolean} dryRun
 * @property {number} statusCode
 * @property {any} message
 * @property {Fn | null} handler
 * @property {Fn | null} onRefused
 * @property {string | null} headers
 * @property {boolean} legacyHeaders
 * @property {string} requestPropertyName
 * @property {boolean} skipFailed
 * @property {boolean} skipSuccessful
 * @property {Fn | null} wasSuccessful
 * @property {number} maxDelayMs
 * @property {number} maxHeld
 * @property {number} refusalDelayMs
 */

const NAMES = [
  ...SOURCES, 'table', 'domain', 'tag', 'keyGenerator', 'cost', 'methods', 'routes', 'allow', 'skip',
  'skipFailedRequests', 'skipSuccessfulRequests', 'requestWasSuccessful', 'dryRun', 'statusCode',
  'message', 'handler', 'onRefused', 'standardHeaders', 'legacyHeaders', 'requestPropertyName',
  'maxDelayMs', 'maxHeld', 'throttleMilliseconds', 'trustedProxies', 'ipv6Subnet', 'validate',
];

/** What the same thing is called elsewhere. */
const ELSEWHERE = {
  allowList: 'allow', whitelist: 'allow', key: 'tag', keyFunc: 'tag', by: 'tag', weight: 'cost', points: 'limit',
  duration: 'windowMs', timeWindow: 'windowMs', identifier: 'domain', name: 'domain', prefix: 'domain',
  keyPrefix: 'domain', groupId: 'domain', scope: 'domain', nameSpace: 'table', store: 'table', redis: 'cluster',
  status: 'statusCode', body: 'message', errorResponseBuilder: 'message', headers: 'standardHeaders',
  onLimitReached: 'onRefused', onExceeded: 'onRefused', delay: 'maxDelayMs', delayMs: 'maxDelayMs',
  maxDelay: 'maxDelayMs', maxWaitMs: 'maxDelayMs', execEvenly: 'maxDelayMs', trustProxy: 'trustedProxies',
  proxies: 'trustedProxies', ipv6Prefix: 'ipv6Subnet',
  passOnStoreError: 'leave it out: requests always pass when the throttle fails',
};

/** As Node makes them. */
const REQUEST = new IncomingMessage(new Socket());

const NETWORK = /^(\d+(\.\d+){1,3}|[0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:.]*)(\/.*)?$/;
const HEADER = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/;
/** What may be allowed where tags are addresses. */
const ADDRESSES = 'an address or a network such as "10.0.0.0/8", as long as tags are addresses (option tag)';

/**
 * The options as one object, of what a middleware was called with: a rate, the path of a file, a
 * throttle, or all options.
 * @param {unknown} source
 * @param {unknown} [options]
 * @returns {Record<string, unknown>}
 */
function gather(source, options) {
  if (options !== undefined && !isTable(options)) throw wrong('options', options, 'an object');
  if (typeof source === 'string' && source.endsWith('.toml')) return { ...options, file: source };
  if (typeof source === 'string' || typeof source === 'number') return { ...options, rate: source };
  if (typeof source === 'object' && source !== null && typeof Reflect.get(source, 'check') === 'function') {
    return { ...options, throttle: source };
  }
  if (isTable(source)) return { ...source, ...options };
  throw misuse('throttle', `${describe(source)} cannot be; must be a rate, an object of options, a Throttle, or a file`);
}

/**
 * Checks everything, then opens the throttle.
 * @param {Readonly<Record<string, any>>} options
 * @param {object} [use]
 * @param {string} [use.where] What the middleware is for, where that is known: keeps its buckets apart.
 * @param {Opened} [use.inherited] What it counts with, if that is there already.
 * @param {boolean} [use.tagsLater] Whether others say by what tags they ask; then `allow` is theirs to judge.
 * @returns {Settings}
 */
function readOptions(options, { where, inherited, tagsLater = false } = {}) {
  known('throttle', Object.keys(options), NAMES, ELSEWHERE);
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== null));
  const read = new Reader(given);
  const reports = new Reports(read.off());
  reports.lookAtStack();
  const methods = read.methods();
  const routes = read.routes();
  const settings = {
    reports,
    ...read.tag(),
    address: new ClientAddress({ trustedProxies: given.trustedProxies, ipv6Subnet: given.ipv6Subnet }),
    trusts: given.trustedProxies !== undefined,
    cost: read.cost(),
    methods,
    routes,
    ...read.allow(),
    dryRun: read.flag('dryRun'),
    statusCode: read.number('statusCode', 429, 400, 599, true),
    message: read.message(),
    handler: read.fn('handler'),
    onRefused: read.fn('onRefused'),
    headers: read.headers(),
    legacyHeaders: read.flag('legacyHeaders'),
    requestPropertyName: read.property(),
    skipFailed: read.flag('skipFailedRequests'),
    skipSuccessful: read.flag('skipSuccessfulRequests'),
    wasSuccessful: read.fn('requestWasSuccessful'),
    maxDelayMs: read.number('maxDelayMs', 0, 0, 3_600_000),
    maxHeld: read.number('maxHeld', 64, 0, 1_000_000, true),
    refusalDelayMs: read.number('throttleMilliseconds', 0, 0, 3_600_000),
  };
  if (!tagsLater) judgeAllow(settings);
  read.text('domain');
  const label = toLabel([...(methods ?? [])].sort(), routes, where);
  const opened = inherited ?? openSource(given, label, reports);
  const { least } = opened;
  if (typeof settings.cost === 'number' && settings.cost > least) {
    if (opened !== inherited) opened.close();
    throw wrong('cost', settings.cost, `at most ${least}, the burst`);
  }
  return { opened, ...settings };
}

class Reader {
  #given;

  /** @param {Record<string, any>} given */
  constructor(given) {
    this.#given = given;
  }

  /**
   * @param {string} name
   * @returns {Fn | null}
   */
  fn(name) {
    const value = this.#given[name] ?? null;
    if (value !== null && typeof value !== 'function') throw wrong(name, value, 'a function');
    return value;
  }

  /**
   * @param {string} name
   * @returns {string | undefined}
   */
  text(name) {
    const value = this.#given[name];
    if (value !== undefined && (typeof value !== 'string' || value === '')) throw wrong(name, value, 'text');
    return value;
  }

  property() {
    const name = this.text('requestPropertyName') ?? 'rateLimit';
    // What Node or JavaScript has there is needed.
    if (name in REQUEST) throw wrong('requestPropertyName', name, 'a name that requests do not have already');
    return name;
  }

  /** @param {string} name */
  flag(name) {
    const value = this.#given[name] ?? false;
    if (typeof value !== 'boolean') throw wrong(name, value, 'true or false');
    return value;
  }

  /**
   * @param {string} name
   * @param {number} usual
   * @param {number} least
   * @param {number} most
   * @param {boolean} [whole]
   * @returns {number}
   */
  number(name, usual, least, most, whole = false) {
    const value = this.#given[name] ?? usual;
    const fits = typeof value === 'number' && value >= least && value <= most && (!whole || Number.isInteger(value));
    if (fits) return value;
    throw wrong(name, value, `a ${whole ? 'whole ' : ''}number from ${least} to ${most}`);
  }

  /**
   * @param {string} name
   * @param {string} example
   * @returns {any[]}
   */
  list(name, example) {
    const value = this.#given[name] ?? [];
    if (!Array.isArray(value)) throw wrong(name, value, `a list such as ${example}`);
    return value;
  }

  tag() {
    const { tag, keyGenerator } = this.#given;
    if (tag !== undefined && keyGenerator !== undefined) {
      throw misuse('keyGenerator', 'is another name for tag; give one of them');
    }
    if (keyGenerator !== undefined) return { tag: this.fn('keyGenerator'), header: null };
    if (typeof tag === 'function') return { tag, header: null };
    if (tag === undefined || tag === 'address') return { tag: null, header: null };
    const header = typeof tag === 'string' ? HEADER.exec(tag) : null;
    if (header === null) throw wrong('tag', tag, "a function, 'address', or 'header:X-Api-Key'");
    return { tag: null, header: header[1].toLowerCase() };
  }

  /** @returns {number | Fn} */
  cost() {
    const value = this.#given.cost ?? 1;
    if (typeof value === 'function' || (Number.isSafeInteger(value) && value >= 0)) return value;
    throw wrong('cost', value, 'a whole number, or a function');
  }

  methods() {
    const values = this.list('methods', "['GET', 'POST']");
    for (const value of values) {
      if (typeof value === 'string' && /^[A-Z][A-Z-]*$/.test(value)) continue;
      const meaning = typeof value === 'string' && /^[a-zA-Z]+$/.test(value);
      throw wrong('methods', value, meaning ? `'${value.toUpperCase()}'` : "a method such as 'GET'");
    }
    if (this.#given.methods === undefined) return null;
    if (values.length === 0) throw wrong('methods', values, "a list such as ['GET', 'POST']; leave it out for all");
    // Applications answer HEAD by what they have for GET.
    return new Set(values.includes('GET') ? [...values, 'HEAD'] : values);
  }

  routes() {
    return this.list('routes', "['/login', /^\\/api\\//]").map((route) => {
      // One that remembers where it stopped would match every second time.
      if (route instanceof RegExp) return new RegExp(route.source, route.flags.replace(/[gy]/g, ''));
      if (typeof route !== 'string' || route === '') throw wrong('routes', route, 'text or a regular expression');
      try {
        // A line break in a path, %0A, is a character like any other.
        return new RegExp(`^(?:${route})$`, 'us');
      } catch (error) {
        throw wrong('routes', route, `a regular expression (${/** @type {Error} */ (error).message})`);
      }
    });
  }

  allow() {
    const given = this.#given.allow ?? [];
    const skip = this.fn('skip');
    if (typeof given === 'function') throw wrong('allow', given, 'a list; skip takes a function');
    if (!Array.isArray(given)) throw wrong('allow', given, "a list such as ['10.0.0.0/8']");
    const { tag, header } = this.tag();
    const byAddress = tag === null && header === null;
    const networks = [];
    const allowTags = new Set();
    let allowMisfit = null;
    for (const value of given) {
      if (typeof value !== 'string' && !isBytes(value)) {
        throw wrong('allow', value, 'an address, a network or a tag, as text or bytes');
      }
      // Also one that is wrong, so that it is an error and not a tag that nobody has.
      if (typeof value === 'string' && NETWORK.test(value)) networks.push(value);
      // The letters of a name would be the bytes of somebody's address.
      else if (typeof value === 'string' && byAddress) allowMisfit ??= value;
      else allowTags.add(toDigits(value));
    }
    return { skip, allowNetworks: networks.length > 0 ? new Networks(networks, 'allow') : null, allowTags, allowMisfit };
  }

  message() {
    const { message } = this.#given;
    if (message === undefined || ['string', 'function'].includes(typeof message)) return message;
    if (isBytes(message) || Array.isArray(message) || isTable(message)) return message;
    throw wrong('message', message, "text, bytes, an object, a function, or 'problem+json'");
  }

  /** @returns {string | null} */
  headers() {
    const value = this.#given.standardHeaders ?? true;
    if (typeof value === 'boolean') return value ? STANDARD : null;
    if (KINDS.includes(value)) return value;
    const near = typeof value === 'string' ? meant(value, KINDS) : undefined;
    const hint = near ? `; did you mean '${near}'?` : '';
    throw wrong('standardHeaders', value, `true, false, or one of ${KINDS.join(', ')}${hint}`);
  }

  /** The checks that are turned off. */
  off() {
    const value = this.#given.validate ?? true;
    const checks = Object.keys(CHECKS);
    if (typeof value === 'boolean') return new Set(value ? [] : checks);
    if (!isTable(value)) throw wrong('validate', value, 'true, false, or an object such as { trustProxy: false }');
    known('validate', Object.keys(value), checks);
    for (const [check, on] of Object.entries(value)) {
      if (typeof on !== 'boolean') throw wrong(`validate.${check}`, on, 'true or false');
    }
    return new Set(checks.filter((check) => value[check] === false));
  }
}

/**
 * Whether all that is allowed can be somebody, by the tags that are asked about.
 * @param {{ allowMisfit: string | null }} settings
 */
function judgeAllow({ allowMisfit }) {
  if (allowMisfit !== null) throw wrong('allow', allowMisfit, ADDRESSES);
}

/**
 * A name for the domain of what a middleware is for.
 * @param {string[]} methods
 * @param {RegExp[]} routes
 * @param {string} [where]
 */
function toLabel(methods, routes, where) {
  // Routes that were text are as in other languages.
  const texts = routes.map((route) => /^\^\(\?:(.*)\)\$$/s.exec(route.source)?.[1].replaceAll('\\/', '/') ?? route.source);
  const text = [...methods, ...(where === undefined ? [] : [where]), ...texts].join(' ') || 'default';
  const plain = /^[^\p{C}\p{Zl}\p{Zp}]*$/u.test(text) && new TextEncoder().encode(text).length <= 200;
  return plain ? text : createHash('sha256').update(text).digest('hex');
}

/**
 * A tag's bytes, so that text and bytes can be compared.
 * @param {string | Uint8Array} tag
 */
function toDigits(tag) {
  return Buffer.from(typeof tag === 'string' ? new TextEncoder().encode(tag) : tag).toString('hex');
}

module.exports = { NAMES, gather, judgeAllow, readOptions, toDigits };
