// From what a middleware was given to a throttle: a Throttle itself, a rate, rules, or a file.
//
// A throttle that is made here has its table named after the application, so that all workers share
// it, unless told otherwise.
'use strict';

const { readFileSync } = require('node:fs');

const { DthrottleError } = require('../face/errors.js');
const { isTable } = require('../face/values.js');
const { applicationName } = require('./application.js');
const { misuse, wrong } = require('./near.js');

/** @import { Domain, Throttle } from '../index.js' */
/** @import { Policy } from './headers.js' */
/** @import { Reports } from './validate.js' */

/**
 * @typedef {object} Opened A domain, and what is known about it.
 * @property {Domain} domain
 * @property {Map<string, Policy>} policies What clients may know of its rules, by the rule's name.
 * @property {string | number} place Where it counts: a table's name, or a number for a throttle of its own.
 * @property {string | undefined} table Its name; undefined: none, or the throttle came with it.
 */

/** @typedef {Readonly<Record<string, any>>} Given Options that were given a value. */

/** Keys of a domain, which stand at the top where there is only one. */
const OF_DOMAIN = ['rate', 'burst', 'chargeRefused', 'rules'];
const OF_WINDOW = ['windowMs', 'limit', 'max'];
const OF_THROTTLE = [...OF_DOMAIN, ...OF_WINDOW, 'domains', 'cluster', 'clock'];
const SOURCES = ['throttle', 'file', ...OF_THROTTLE];

const HAS_TABLE = /^[ \t]*(\[[ \t]*)?["']?table["']?[ \t]*[\].=]/m;

/** @type {Map<string, Map<string, string>>} What counts in this process: tables, domains, rules. */
const counting = new Map();

/** @type {WeakMap<object, number>} Throttles without a name, told apart. */
const places = new WeakMap();
let lastPlace = 0;

/** @type {Set<string>} Tables that cannot be used, of which that was said. */
const lost = new Set();

/**
 * Opens a throttle. The label names the domain of a source that has only one, and no name.
 * @param {Given} given
 * @param {string} label
 * @param {Reports} reports
 * @returns {Opened}
 */
function openSource(given, label, reports) {
  if (given.throttle !== undefined) return fromThrottle(given);
  if (given.file !== undefined) return fromFile(given, reports);
  return fromOptions(given, label, reports);
}

/** @param {Given} given */
function fromThrottle(given) {
  const { throttle } = given;
  if (!isDomain(throttle)) throw wrong('throttle', throttle, 'a Throttle, or one of its domains');
  for (const key of ['file', 'table', ...OF_THROTTLE]) {
    if (given[key] !== undefined) throw misuse(key, 'the throttle has its own; give it there');
  }
  if (given.domain === undefined) return opened(throttle, undefined, throttle);
  if (!('domain' in throttle)) throw misuse('domain', 'the throttle is a domain already');
  return opened(/** @type {Throttle} */ (throttle).domain(given.domain), undefined, throttle);
}

/**
 * Also one of dthrottle-wasm will do.
 * @param {any} value
 * @returns {value is Domain}
 */
function isDomain(value) {
  return typeof value?.check === 'function' && typeof value.refund === 'function' && Array.isArray(value.rules);
}

/**
 * @param {Given} given
 * @param {Reports} reports
 */
function fromFile(given, reports) {
  const { file } = given;
  if (typeof file !== 'string') throw wrong('file', file, 'the path of a file in TOML');
  for (const key of OF_THROTTLE) {
    if (given[key] !== undefined) throw misuse(key, `${file} has that; give it there`);
  }
  const text = readText(file);
  /** @type {{ throttle: Throttle, name?: string | undefined }} */
  let made;
  if (text === undefined || HAS_TABLE.test(text)) {
    if (text !== undefined && given.table !== undefined) throw misuse('table', `${file} has one already; give it there`);
    made = { throttle: inFile(file, () => native().fromFile(file)) };
  } else {
    // At the end, so that errors have the lines of the file.
    made = orPrivate(given, reports, (table) => inFile(file, () => native().fromToml(text + toToml(table))));
  }
  const { throttle, name } = made;
  const domain = throttle.domain(given.domain ?? 'default');
  meet(name, domain.name, JSON.stringify(domain.rules), reports);
  return opened(domain, name, throttle);
}

/**
 * Opens a throttle with the table that is given or usual. A usual one that cannot be used, such as
 * one whose name another user has taken, is done without: it must not keep an application from
 * starting.
 * @param {Given} given
 * @param {Reports} reports
 * @param {(table: Record<string, any>) => Throttle} open
 */
function orPrivate(given, reports, open) {
  const table = toTable(given.table);
  const { name, ...rest } = table;
  const named = typeof given.table === 'string' || given.table?.name !== undefined;
  try {
    return { throttle: open(table), name };
  } catch (error) {
    if (named || name === undefined || !(error instanceof DthrottleError) || error.code !== 'DTHROTTLE_FILE') throw error;
    const throttle = open({ ...rest, private: true });
    if (!lost.has(name)) {
      lost.add(name);
      reports.failure('DTHROTTLE_FAILED', 'table', `table failed, and this process counts for itself: ${error.message}`, error);
    }
    return { throttle, name: undefined };
  }
}

/**
 * @param {string} file
 * @returns {string | undefined} Nothing if it cannot be read: who opens it says why.
 */
function readText(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** @param {Record<string, any>} table */
function toToml(table) {
  return `\n[table]\n${Object.entries(table).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`).join('')}`;
}

/**
 * @template T
 * @param {string} file
 * @param {() => T} open
 */
function inFile(file, open) {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof DthrottleError) || error.code !== 'DTHROTTLE_CONFIG') throw error;
    const { field, line } = error;
    throw new DthrottleError(error.code, `${file}: ${error.message}`, { field, line });
  }
}

/**
 * @param {Given} given
 * @param {string} label
 * @param {Reports} reports
 */
function fromOptions(given, label, reports) {
  /** @type {Record<string, any>} */
  const config = {};
  for (const key of [...OF_DOMAIN, 'domains', 'cluster', 'clock']) {
    if (given[key] !== undefined) config[key] = given[key];
  }
  addWindow(given, config, reports);
  if (!['rate', 'rules', 'domains'].some((key) => key in config)) {
    throw misuse('rate', "is missing; give one such as '100/s', or rules, a file, or a throttle");
  }
  // A clock of one's own has a table of its own.
  const hasTable = config.clock === undefined || given.table !== undefined;
  const shared = hasTable ? toTable(given.table).name : undefined;
  let domain = given.domain;
  if (config.domains === undefined) {
    const rules = JSON.stringify(OF_DOMAIN.map((key) => config[key]));
    domain = meet(shared, domain ?? label, rules, reports, domain === undefined);
    if (domain !== 'default') {
      config.domains = { [domain]: {} };
      for (const key of OF_DOMAIN) {
        if (key in config) config.domains[domain][key] = config[key];
        delete config[key];
      }
    }
  }
  const Throttle = native();
  const { throttle, name } = hasTable
    ? orPrivate(given, reports, (table) => new Throttle({ ...config, table }))
    : { throttle: new Throttle(config), name: undefined };
  return opened(throttle.domain(domain ?? 'default'), name, throttle);
}

/**
 * Makes a rule of a window and its limit.
 * @param {Given} given
 * @param {Record<string, any>} config
 * @param {Reports} reports
 */
function addWindow({ windowMs, limit, max }, config, reports) {
  if (windowMs === undefined && limit === undefined && max === undefined) return;
  if (limit !== undefined && max !== undefined) throw misuse('max', 'is another name for limit; give one of them');
  const most = limit ?? max;
  const named = max === undefined ? 'limit' : 'max';
  if (windowMs === undefined) throw misuse('windowMs', `is missing beside ${named}; or give a rate such as '100/s'`);
  if (most === undefined) throw misuse('limit', "is missing beside windowMs; or give a rate such as '100/s'");
  if (!Number.isSafeInteger(windowMs) || windowMs < 1) throw wrong('windowMs', windowMs, 'whole milliseconds, 1 or more');
  if (!Number.isSafeInteger(most) || most < 1) throw wrong(named, most, 'a whole number, 1 or more');
  for (const key of ['rate', 'rules', 'domains']) {
    if (key in config) throw misuse(key, `says what windowMs and ${named} say; give one of them`);
  }
  config.rate = `${most} per ${windowMs} ms`;
  reports.misuse(
    'window',
    `windowMs and ${named} are taken as rate: '${config.rate}', burst: ${config.burst ?? most}: ` +
      'a bucket that fills all the time, with no window that ends',
  );
}

/**
 * The name under which a middleware counts in a table. Two that would disturb each other, because
 * they go by different rules, get different names if nobody named them; the order in which they are
 * made is the same in all workers.
 * @param {string | undefined} table
 * @param {string} domain
 * @param {string} rules
 * @param {Reports} reports
 * @param {boolean} [unnamed]
 * @returns {string}
 */
function meet(table, domain, rules, reports, unnamed = false) {
  if (table === undefined) return domain;
  const domains = counting.get(table) ?? new Map();
  counting.set(table, domains);
  let name = domain;
  for (let number = 2; (domains.get(name) ?? rules) !== rules; number += 1) {
    if (!unnamed) {
      reports.misuse(
        'sameDomain',
        `another middleware of this application counts under domain '${name}' by other rules, and ` +
          'they will disturb each other: give one of them another domain',
      );
      return name;
    }
    name = `${domain} ${number}`;
  }
  domains.set(name, rules);
  if (name !== domain) {
    reports.misuse(
      'sameDomain',
      `another middleware of this application counts under domain '${domain}' by other rules, so ` +
        `this one counts under '${name}': give each a name, such as domain: 'login'`,
    );
  }
  return name;
}

/**
 * @param {unknown} table
 * @returns {Record<string, any>}
 */
function toTable(table) {
  if (table === false) return { private: true };
  if (typeof table === 'string') return { name: table };
  if (table !== undefined && !isTable(table)) throw wrong('table', table, 'a name, an object, or false for a private one');
  /** @type {Record<string, any>} */
  const made = { ...table };
  if (made.name === undefined && made.private !== true) {
    const name = applicationName();
    if (name !== undefined) made.name = name;
  }
  return made;
}

/** @returns {typeof import('../index.js').Throttle} */
function native() {
  // Not before it is needed: where there is no addon, a throttle can be given.
  return require('../index.js').Throttle;
}

/**
 * @param {Domain} domain
 * @param {string | undefined} table
 * @param {object} throttle
 * @returns {Opened}
 */
function opened(domain, table, throttle) {
  const { name, rules } = domain;
  // A rule that nobody named is known by the domain's name.
  const alone = rules.length === 1 && rules[0].name === 'rule1';
  /** @type {[string, Policy][]} */
  const policies = rules.map((rule) => [
    rule.name,
    { name: alone ? name : rule.name, quota: rule.limit, windowMs: rule.windowMs },
  ]);
  return { domain, policies: new Map(policies), table, place: table ?? toPlace(throttle) };
}

/** @param {object} throttle */
function toPlace(throttle) {
  const known = places.get(throttle);
  if (known !== undefined) return known;
  lastPlace += 1;
  places.set(throttle, lastPlace);
  return lastPlace;
}

module.exports = { SOURCES, openSource };
