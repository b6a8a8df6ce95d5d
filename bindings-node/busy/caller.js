// Shared by all adapters: finds the service of a request, waits for its turn, and recognises busy responses.
// Independent of any HTTP library.
'use strict';

const { BusyThrottle, DthrottleError } = require('../index.js');
const { badArgument } = require('../api/errors.js');
const { describe, toNumber, toOptions } = require('../api/values.js');
const { Abort } = require('./abort.js');
const { LONGEST_MS, retryAfterMs } = require('./retry.js');

/** @import { CallOptions } from './index.js' */

const OPTIONS = ['throttle', 'maxDelayMs', 'statuses', 'service'];
const BUSY = [429, 503];
/** The longest time that setTimeout accepts. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** The longest extra wait because of other waiting requests. The limit may rise in the meantime. */
const MAX_QUEUE_MS = 1000;

/** The error of a request that was not sent, because its service is busy. */
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

// Defined on the prototype, because Node prints an own property `name` in addition to the stack.
Object.defineProperty(ServiceBusyError.prototype, 'name', {
  value: 'ServiceBusyError',
  configurable: true,
  writable: true,
});

/**
 * The service of a URL: its host, and its port unless it is the default port of the scheme. names.py in the
 * Python package has the same rules. Returns '' for an invalid URL.
 * @param {string} url
 */
function serviceOf(url) {
  try {
    return new URL(url).host;
  } catch {
    // URL.canParse() is wrong about names such as bücher.example in Node 20, once it is compiled.
    return '';
  }
}

/**
 * Calls a throttle. Returns undefined if it is closed; every request is then allowed.
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

/** A request that waits for its turn. */
class Wait {
  /** The time by performance.now() at which the request is refused. */
  #end;
  #caller;
  /** @type {Wait[] | undefined} The requests that wait for the same service, the oldest first. */
  #queue;

  /**
   * @param {Caller} caller
   * @param {string} service
   */
  constructor(caller, service) {
    this.#caller = caller;
    this.service = service;
    this.#end = performance.now() + caller.maxDelayMs;
  }

  /** Returns the milliseconds to wait before the next call, or 0 if the request may be sent. */
  next() {
    const { service } = this;
    const { throttle, queues } = this.#caller;
    const turn = unlessClosed(() => throttle.turn(service));
    if (turn === undefined || turn.allowed) return 0;
    const left = this.#end - performance.now();
    if (turn.waitMs > left) throw new ServiceBusyError(service, turn.waitMs);
    if (this.#queue === undefined) {
      this.#queue = queues.get(service) ?? [];
      this.#queue.push(this);
      queues.set(service, this.#queue);
    }
    // Spaces the retries by the limit. At the same time, only one of them would get a turn.
    const queued = Math.min((this.#queue.indexOf(this) * 1000) / turn.limit, MAX_QUEUE_MS);
    // The shortest timer is 1 ms.
    return Math.min(Math.max(Math.min(turn.waitMs + queued, left), 1), LONGEST_TIMER_MS);
  }

  /** Leaves the queue. */
  leave() {
    const queue = this.#queue;
    if (queue === undefined) return;
    queue.splice(queue.indexOf(this), 1);
    if (queue.length === 0) this.#caller.queues.delete(this.service);
    this.#queue = undefined;
  }
}

class Caller {
  /** @type {Map<string, Wait[]>} The waiting requests of each service. */
  queues = new Map();

  /** @param {CallOptions} [options] */
  constructor(options) {
    const given = toOptions(options, OPTIONS);
    const { throttle = new BusyThrottle(), maxDelayMs = 0 } = given;
    const { statuses = BUSY, service = serviceOf } = given;
    if (!(throttle instanceof BusyThrottle)) {
      throw badArgument(`\`throttle\` must be a BusyThrottle, got ${describe(throttle)}`);
    }
    if (!(toNumber('maxDelayMs', maxDelayMs) >= 0 && Number(maxDelayMs) <= LONGEST_MS)) {
      throw badArgument(`\`maxDelayMs\` must be a number of milliseconds from 0 to a year, got ${maxDelayMs}`);
    }
    if (!Array.isArray(statuses) || !statuses.every((status) => Number.isInteger(status))) {
      throw badArgument(`\`statuses\` must be a list such as [429, 503], got ${describe(statuses)}`);
    }
    if (typeof service !== 'function') {
      throw badArgument(`\`service\` must be a function from URL to name, got ${describe(service)}`);
    }
    this.throttle = throttle;
    this.maxDelayMs = Number(maxDelayMs);
    this.statuses = new Set(statuses);
    this.service = /** @type {(url: string) => string} */ (service);
  }

  /**
   * Waits until a request may be sent. Rejects if that would take too long, or if a signal aborts the request.
   * @param {string} service
   * @param {any[]} signals
   */
  async waitForTurn(service, ...signals) {
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
   * Reports a response to the throttle.
   * @param {string} service
   * @param {number} status
   * @param {string | null | undefined} retryAfter
   */
  onResponse(service, status, retryAfter) {
    if (!this.statuses.has(status)) this.onOk(service);
    else unlessClosed(() => this.throttle.onBusy(service, retryAfterMs(retryAfter)));
  }

  /**
   * Reports a response that was not busy.
   * @param {string} service
   */
  onOk(service) {
    unlessClosed(() => this.throttle.onOk(service));
  }
}

module.exports = { Caller, DthrottleError, ServiceBusyError, Wait, serviceOf };
