// A gatekeeper for Smockron, as middleware for Express and Connect. Its master is dthrottled or another program
// with the protocol of Smockron.
//
//     app.use(gatekeeper({ master: '127.0.0.1:10004', domain: 'web' }));
//
// The gatekeeper reports the requests that it lets pass. The master names the clients that must wait, and the
// gatekeeper delays or rejects their requests. Without a master, all requests pass. docs/node.md has the options.
'use strict';

const { isTable } = require('../api/values.js');
const { onClientLeave } = require('../web/delay.js');
const { badOption, badValue, checkNames } = require('../web/errors.js');
const { Delays } = require('./delays.js');
const { Master } = require('./master.js');
const { Reader, defaultTag, toBytes, toKey } = require('./reader.js');

/** @import { IncomingMessage, ServerResponse } from 'node:http' */
/** @import { Gatekeeper, GatekeeperCounts, GatekeeperOptions } from './index.js' */
/** @import { DelayedRequest } from './delays.js' */

const NAMES = [
  'master', 'control', 'domain', 'tag', 'logInfo', 'maxDelayMs', 'maxDelayed', 'status', 'body', 'tellRejected',
];
const ADDRESS = /^(?:tcp:\/\/)?(\[[0-9a-fA-F:.]+\]|[^\s:/[\]]+):(\d{1,5})$/;
const EXAMPLE = "'127.0.0.1:10004'";

/**
 * @param {GatekeeperOptions} options
 * @returns {Gatekeeper}
 */
function gatekeeper(options) {
  const { accounting, control, domain, tag, logInfo, maxDelayMs, maxDelayed, status, body, tellRejected } = read(options);
  const delays = new Delays(maxDelayMs, maxDelayed);
  const master = new Master(accounting, control, domain, (client, until) => delays.delay(client, until));
  /** @type {GatekeeperCounts} */
  const counts = { accepted: 0, delayed: 0, rejected: 0, gaveUp: 0, untagged: 0, failed: 0 };
  const reader = new Reader(tag, logInfo, counts);

  /**
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {(error?: unknown) => void} next
   */
  function middleware(request, response, next) {
    const arrived = Date.now();
    const bytes = reader.tag(request);
    // The default tag is the client's address, which is unknown here. The request passes, and no client is charged.
    if (bytes === null) {
      next();
      return;
    }
    const who = toKey(bytes);
    const info = reader.logInfo(request);
    const accept = () => {
      counts.accepted += 1;
      master.report('ACCEPTED', bytes, arrived, '', info);
      next();
    };
    const reject = (/** @type {number} */ until) => {
      counts.rejected += 1;
      if (Math.random() < tellRejected) master.report('REJECTED', bytes, arrived, '', info);
      refuse(request, response, until);
    };
    const until = delays.until(who, arrived);
    if (until === 0) {
      accept();
      return;
    }
    let stop = () => {};
    /** @type {DelayedRequest} */
    const delayed = {
      arrived,
      given(kind, turn) {
        counts.delayed += 1;
        master.report(kind, bytes, arrived, turn, info);
      },
      pass(kind) {
        stop();
        if (kind === 'DELAYED') next();
        else accept();
      },
      reject(turn) {
        stop();
        reject(turn);
      },
    };
    if (!delays.add(who, delayed)) {
      reject(until);
      return;
    }
    stop = onClientLeave(response)(() => {
      counts.gaveUp += 1;
      delays.leave(who, delayed);
    });
  }

  /**
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   * @param {number} until
   */
  function refuse(request, response, until) {
    if (response.headersSent) return;
    response.statusCode = status;
    response.setHeader('Content-Type', 'text/plain; charset=utf-8');
    response.setHeader('Retry-After', String(Math.max(1, Math.ceil((until - Date.now()) / 1000))));
    response.end(request.method === 'HEAD' ? undefined : body);
  }

  return Object.assign(middleware, {
    counts,
    master: master.counts,
    /** @param {string | number | bigint | Uint8Array} who */
    until(who) {
      const bytes = toBytes(who);
      return bytes === null ? 0 : delays.until(toKey(bytes), Date.now());
    },
    close() {
      delays.close();
      master.close();
    },
  });
}

/** @param {GatekeeperOptions} options */
function read(options) {
  if (!isTable(options)) throw badValue('options', options, `an object such as { master: ${EXAMPLE}, domain: 'web' }`);
  checkNames('', Object.keys(options), NAMES);
  const { domain, tag = defaultTag, logInfo, body = 'Rejected\n', tellRejected = true } = options;
  const accounting = toHostAndPort('master', options.master);
  const next = { ...accounting, port: accounting.port + 1 };
  const control = options.control === undefined ? next : toHostAndPort('control', options.control);
  if (typeof domain !== 'string' || domain === '' || domain.includes('\0')) {
    throw badValue('domain', domain, "the domain's name at the master, such as 'web'");
  }
  for (const [name, value] of Object.entries({ tag, logInfo })) {
    if (value !== undefined && typeof value !== 'function') throw badValue(name, value, 'a function of the request');
  }
  if (typeof body !== 'string') throw badValue('body', body, 'text');
  const share = Number(tellRejected);
  if (!['boolean', 'number'].includes(typeof tellRejected) || !(share >= 0 && share <= 1)) {
    throw badValue('tellRejected', tellRejected, 'true, false, or a share from 0 to 1');
  }
  return {
    accounting: toAddress(accounting),
    control: toAddress(control),
    domain,
    tag,
    logInfo,
    maxDelayMs: toNumber(options, 'maxDelayMs', 5000, 0, 3_600_000),
    maxDelayed: toNumber(options, 'maxDelayed', 1000, 0, 1_000_000),
    status: toNumber(options, 'status', 503, 400, 599),
    body,
    tellRejected: share,
  };
}

/**
 * @param {Readonly<Record<string, any>>} options
 * @param {string} name
 * @param {number} byDefault
 * @param {number} min
 * @param {number} max
 * @returns {number}
 */
function toNumber(options, name, byDefault, min, max) {
  const value = options[name] ?? byDefault;
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw badValue(name, value, `a whole number from ${min} to ${max}`);
}

/**
 * @param {string} name
 * @param {unknown} value
 */
function toHostAndPort(name, value) {
  const parts = typeof value === 'string' ? ADDRESS.exec(value) : null;
  if (parts === null) throw badValue(name, value, `a host and a port, such as ${EXAMPLE}`);
  const port = Number(parts[2]);
  // The default control socket is on the next port.
  const max = name === 'master' ? 65534 : 65535;
  if (port < 1 || port > max) throw badOption(name, `must have a port from 1 to ${max}, got ${port}`);
  return { host: parts[1], port };
}

/** @param {{ host: string, port: number }} hostAndPort */
function toAddress({ host, port }) {
  return `tcp://${host}:${port}`;
}

module.exports = { gatekeeper };
