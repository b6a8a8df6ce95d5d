// What all adapters have in common: whom a call is for, how it waits, and which answers are busy. It
// knows nothing of any HTTP library.
'use strict';

const { BusyThrottle, DthrottleError } = require('../index.js');
const { badArgument } = require('../face/errors.js');
const { describe, toNumber, toOptions } = require('../face/values.js');
const { Abort } = require('./abort.js');
const { LONGEST_MS, retryAfterMs } = require('./retry.js');

/** @import { CallOptions } from './index.js' */

const OPTIONS = ['throttle', 'maxWaitMs', 'statuses', 'service'];
const BUSY = [429, 503];
/** What setTimeout takes at most. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** For how long one does not ask again because of others that wait: the limit may rise meanwhile. */
const BEHIND_MS = 1000;

/** A request was not sent, because the service is busy and its turn is not yet. */
class ServiceBusyError extends Error {
  /**
   * @param {string} service
   * @param {number} waitMs
   */
  constructor(service, waitMs) {
    super(`${service} is busy: not sent, try again in ${Math.ceil(waitMs)} ms`);
    this.code = 'SERVICE_BUSY';
    this.service = service;
    this.waitMs = waitMs;
  }
}

// Not an own property: printing an error would show it twice.
Object.defineProperty(ServiceBusyError.prototype, 'name', {
  value: 'ServiceBusyError',
  configurable: true,
  writable: true,
});

/**
 * The service of a URL: its host, and its port unless that is the scheme's own. Python's names.py has
 * the same rules.
 * @param {string} url
 */
function serviceOf(url) {
  try {
    return new URL(url).host;
  } catch {
    // Not by URL.canParse(): once compiled, that of Node 20 errs about names such as bücher.example.
    return '';
  }
}

/**
 * Asks or tells a throttle. Nothing if it is closed: then every request passes.
 * @template T
 * @param {() => T} call
 */
function unlessClosed(call) {
  try {
    return call();
  } catch (error) {
    if (error instanceof DthrottleError && error.code === 'DTHROTTLE_CLOSED') return undefined;
    throw error;
  }
}

/** One request on its way to its turn. */
class Wait {
  /** When it has waited long enough, by performance.now(). */
  #end;
  #caller;
  /** @type {Wait[] | undefined} Who waits for the service, the longest first. */
  #line;

  /**
   * @param {Caller} caller
   * @param {string} service
   */
  constructor(caller, service) {
    this.#caller = caller;
    this.service = service;
    this.#end = performance.now() + caller.maxWaitMs;
  }

  /** Milliseconds to wait before it is worth asking again; 0: it may be sent. */
  next() {
    const { service } = this;
    const { throttle, lines } = this.#caller;
    const turn = unlessClosed(() => throttle.turn(service));
    if (turn === undefined || turn.allowed) return 0;
    const left = this.#end - performance.now();
    if (turn.waitMs > left) throw new ServiceBusyError(service, turn.waitMs);
    if (this.#line === undefined) {
      this.#line = lines.get(service) ?? [];
      this.#line.push(this);
      lines.set(service, this.#line);
    }
    // If all asked again at the same time, all but one would have asked for nothing.
    const behind = Math.min((this.#line.indexOf(this) * 1000) / turn.limit, BEHIND_MS);
    // Not less than a timer can do.
    return Math.min(Math.max(Math.min(turn.waitMs + behind, left), 1), LONGEST_TIMER_MS);
  }

  /** It waits no more. */
  leave() {
    const line = this.#line;
    if (line === undefined) return;
    line.splice(line.indexOf(this), 1);
    if (line.length === 0) this.#caller.lines.delete(this.service);
    this.#line = undefined;
  }
}

class Caller {
  /** @type {Map<string, Wait[]>} Who waits, by service. */
  lines = new Map();

  /** @param {CallOptions} [options] */
  constructor(options) {
    const given = toOptions(options, OPTIONS);
    const { throttle = new BusyThrottle(), maxWaitMs = 0 } = given;
    const { statuses = BUSY, service = serviceOf } = given;
    if (!(throttle instanceof BusyThrottle)) {
      throw badArgument(`throttle: must be a BusyThrottle, not ${describe(throttle)}`);
    }
    if (!(toNumber('maxWaitMs', maxWaitMs) >= 0 && Number(maxWaitMs) <= LONGEST_MS)) {
      throw badArgument(`maxWaitMs ${maxWaitMs}: must be milliseconds from 0 to a year`);
    }
    if (!Array.isArray(statuses) || !statuses.every((status) => Number.isInteger(status))) {
      throw badArgument(`statuses: must be a list such as [429, 503], not ${describe(statuses)}`);
    }
    if (typeof service !== 'function') {
      throw badArgument(`service: must be a function from URL to name, not ${describe(service)}`);
    }
    this.throttle = throttle;
    this.maxWaitMs = Number(maxWaitMs);
    this.statuses = new Set(statuses);
    this.service = /** @type {(url: string) => string} */ (service);
  }

  /**
   * Waits until a request may be sent; rejects if that would take too long, or if it is given up.
   * @param {string} service
   * @param {any[]} signals Who may say so.
   */
  async hold(service, ...signals) {
    const wait = new Wait(this, service);
    const abort = new Abort(...signals);
    try {
      for (;;) {
        abort.throwIfAborted();
        const ms = wait.next();
        if (ms === 0) return;
        await abort.pause(ms);
      }
    } finally {
      wait.leave();
      abort.end();
    }
  }

  /**
   * Tells the throttle what was answered.
   * @param {string} service
   * @param {number} status
   * @param {string | null | undefined} retryAfter
   */
  answered(service, status, retryAfter) {
    if (!this.statuses.has(status)) this.good(service);
    else unlessClosed(() => this.throttle.onBusy(service, retryAfterMs(retryAfter)));
  }

  /**
   * Tells the throttle of an answer that was not busy.
   * @param {string} service
   */
  good(service) {
    unlessClosed(() => this.throttle.onOk(service));
  }
}

module.exports = { Caller, DthrottleError, ServiceBusyError, Wait, serviceOf };
