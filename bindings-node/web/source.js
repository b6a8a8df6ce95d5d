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
const { Opened } = require('./opened.js');
const { share, toKey } = require('./pool.js');

/** @import { Domain, Throttle } from '../index.js' */
/** @import { Reports } from './validate.js' */

/** @typedef {Readonly<Record<string, any>>} Given Options that were given a value. */

/** Keys of a domain, which stand at the top where there is only one. */
const OF_DOMAIN = ['rate', 'burst', 'chargeRefused', 'rules'];
const OF_WINDOW = ['windowMs', 'limit', 'max'];
const OF_THROTTLE = [...OF_DOMAIN, ...OF_WINDOW, 'domains', 'cluster', 'clock'];
const SOURCES = ['throttle', 'file', ...OF_THROTTLE];

/** How the domain of an option is named in errors. */
const OF_ONE = /^domains\.("(?:[^"\\]|\\.)*"|[^".]*)\.?/;

/** @type {Map<string, Map<string, string>>} What counts in this process: tables, domains, rules. */
const counting = new Map();

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
  if (given.domain === undefined) return Opened.given(throttle, throttle);
  if (!('domain' in throttle)) throw misuse('domain', 'the throttle is a domain already');
  return Opened.given(/** @type {Throttle} */ (throttle).domain(given.domain), throttle);
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
  const table = toTable(given.table);
  // A file that has changed is another throttle.
  const pool = share(table.private ? null : [file, readText(file), table], {}, () =>
    orPrivate(given, reports, (made) => inFile(file, () => native().fromFile(file, { table: made }))));
  const opened = leaving(pool, () => Opened.shared(pool, given.domain ?? 'default'));
  meet(opened.table, opened.name, JSON.stringify(opened.rules), reports);
  return opened;
}

/**
 * What is made of a pool, which is left if that fails.
 * @template T
 * @param {import('./pool.js').Pool} pool
 * @param {() => T} make
 */
function leaving(pool, make) {
  try {
    return make();
  } catch (error) {
    pool.leave();
    throw error;
  }
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
  const rest = { ...table };
  const { name } = take(rest, ['name', 'usual']);
  const named = typeof given.table === 'string' || given.table?.name !== undefined;
  try {
    const throttle = open(table);
    return { throttle, name: throttle.tableName ?? undefined };
  } catch (error) {
    if (named || name === undefined || !isOfTable(error)) throw error;
    const throttle = open(rest);
    if (!lost.has(name)) {
      lost.add(name);
      reports.failure('DTHROTTLE_FAILED', 'table', `table failed, and this process counts for itself: ${error.message}`, error);
    }
    return { throttle, name: undefined };
  }
}

/**
 * Whether something is wrong with a table, and not with what was said of it.
 * @param {unknown} error
 * @returns {error is Error}
 */
function isOfTable(error) {
  if (!(error instanceof DthrottleError)) return false;
  // A field of it is not the table itself: there are too many with other keys.
  return error.code === 'DTHROTTLE_FILE' || (error.code === 'DTHROTTLE_CONFIG' && error.field === 'table');
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
  let { domain } = given;
  if (config.domains !== undefined && !isTable(config.domains)) throw wrong('domains', config.domains, 'an object of domains');
  const top = take(config, OF_DOMAIN);
  if (config.domains === undefined) {
    domain = meet(shared, domain ?? label, toKey(top), reports, domain === undefined);
    config.domains = { [domain]: top };
  } else if (Object.keys(top).length > 0) {
    if (Object.hasOwn(config.domains, 'default')) throw misuse('domains.default', 'has its rules at the top, too; give them once');
    config.domains = { default: top, ...config.domains };
  }
  const { domains, ...rest } = config;
  const Throttle = native();
  const what = shared === undefined ? null : [toTable(given.table), rest.cluster];
  const open = (/** @type {Record<string, any>} */ all) => {
    const whole = { ...rest, ...toWhole(all) };
    if (hasTable) return orPrivate(given, reports, (table) => new Throttle({ ...whole, table }));
    return { throttle: new Throttle(whole), name: undefined };
  };
  const pool = share(what, domains, given.domains === undefined ? (all) => asGiven(() => open(all)) : open);
  return leaving(pool, () => Opened.shared(pool, domain ?? 'default'));
}

/**
 * Opens a throttle. What is wrong in the domain that was made of the options is wrong in an option.
 * @template T
 * @param {() => T} open
 */
function asGiven(open) {
  try {
    return open();
  } catch (error) {
    const field = error instanceof DthrottleError ? error.field : undefined;
    const [made] = OF_ONE.exec(field ?? '') ?? [];
    if (!(error instanceof DthrottleError) || field === undefined || made === undefined) throw error;
    const option = field.slice(made.length) || 'domain';
    throw new DthrottleError(error.code, error.message.replace(field, () => option), { field: option, line: error.line });
  }
}

/**
 * Domains as a throttle has them: the keys of the usual one stand at the top, and so they do in errors.
 * @param {Record<string, any>} domains
 */
function toWhole({ default: top, ...others }) {
  return Object.keys(others).length > 0 ? { ...top, domains: others } : { ...top };
}

/**
 * Takes keys out of an object.
 * @param {Record<string, any>} from
 * @param {string[]} keys
 */
function take(from, keys) {
  /** @type {Record<string, any>} */
  const taken = {};
  for (const key of keys) {
    if (!(key in from)) continue;
    taken[key] = from[key];
    delete from[key];
  }
  return taken;
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
    // Whoever joins a cluster, or changes its secret, has another table, and all workers the same.
    if (name !== undefined) Object.assign(made, { name, usual: true });
  }
  return made;
}

/** @returns {typeof import('../index.js').Throttle} */
function native() {
  // Not before it is needed: where there is no addon, a throttle can be given.
  return require('../index.js').Throttle;
}

module.exports = { SOURCES, openSource };
