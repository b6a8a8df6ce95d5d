// The public class BusyThrottle, on top of a native part. It converts arguments, calls the native part once, and
// converts the result. `index.d.ts` documents it.
'use strict';

const { attempt, badArgument } = require('./errors.js');
const { toBusyStats } = require('./records.js');
const { describe, isTable, toNumber, toText } = require('./values.js');
const { encode } = require('./encode_config.js');

/** @import { Busy, Native } from '../surface.js' */
/** @import { ClockSource } from './clocks.js' */
/** @import { BusyOptions, BusyStats, Turn } from '../index.js' */

/** @typedef {(prototype: object, partsOf: (throttle: any) => any) => void} Extend */

/**
 * A number, or undefined.
 * @param {string} name
 * @param {unknown} value
 */
const toOptional = (name, value) => (value === undefined ? undefined : toNumber(name, value));

/**
 * @param {Native} native
 * @param {(choice: unknown) => ClockSource} toSource
 * @param {Extend} [extend] Adds methods of a package.
 */
function makeBusy(native, toSource, extend) {
  /** @type {(busy: BusyThrottle) => { present(): { handle: unknown } }} The node of a busy throttle, for links. */
  let partsOf;

  class BusyThrottle {
    static {
      partsOf = (busy) => {
        const handle = attempt(() => native.busyNode?.(busy.#handle));
        return {
          present() {
            busy.#tick?.();
            return { handle };
          },
        };
      };
    }

    /** @type {Busy} */
    #handle;
    /** @type {(() => void) | undefined} */
    #tick;

    /** @param {BusyOptions} [options] */
    constructor(options = {}) {
      if (!isTable(options)) {
        throw badArgument(`\`options\` must be an object, got ${describe(options)}`);
      }
      const { clock: chosen, ...rest } = options;
      const encoded = encode(rest);
      const { clock, tick } = toSource(chosen);
      this.#handle = attempt(() => native.busyFromConfig(encoded, clock));
      this.#tick = tick;
    }

    /**
     * @param {string} service
     * @param {number} [nowMs]
     */
    shouldSend(service, nowMs) {
      return this.turn(service, nowMs).allowed;
    }

    /**
     * @param {string} service
     * @param {number} [nowMs]
     * @returns {Turn}
     */
    turn(service, nowMs) {
      const name = toText('service', service);
      const now = toOptional('nowMs', nowMs);
      const handle = this.#present();
      const [allowed, waitMs, limit] = attempt(() => Array.from(native.busyTurn(handle, name, now)));
      return { allowed: allowed === 1, waitMs, limit };
    }

    /**
     * @param {string} service
     * @param {number} [retryAfterMs]
     * @param {number} [nowMs]
     */
    onBusy(service, retryAfterMs, nowMs) {
      const name = toText('service', service);
      const pause = toOptional('retryAfterMs', retryAfterMs);
      const now = toOptional('nowMs', nowMs);
      const handle = this.#present();
      attempt(() => native.busyOnBusy(handle, name, pause, now));
    }

    /**
     * @param {string} service
     * @param {number} [nowMs]
     */
    onOk(service, nowMs) {
      const name = toText('service', service);
      const now = toOptional('nowMs', nowMs);
      const handle = this.#present();
      attempt(() => native.busyOnOk(handle, name, now));
    }

    /**
     * @param {string} service
     * @param {number} [nowMs]
     */
    limit(service, nowMs) {
      const name = toText('service', service);
      const now = toOptional('nowMs', nowMs);
      const handle = this.#present();
      return attempt(() => native.busyLimit(handle, name, now));
    }

    /**
     * @param {string} service
     * @param {number} [nowMs]
     */
    rate(service, nowMs) {
      const name = toText('service', service);
      const now = toOptional('nowMs', nowMs);
      const handle = this.#present();
      return attempt(() => native.busyRate(handle, name, now));
    }

    /** @param {string} service */
    forget(service) {
      const name = toText('service', service);
      const handle = this.#handle;
      attempt(() => native.busyForget(handle, name));
    }

    start() {
      const handle = this.#handle;
      attempt(() => native.busyStart(handle));
    }

    /** @returns {BusyStats} */
    stats() {
      const handle = this.#present();
      return toBusyStats(attempt(() => native.busyStats(handle)));
    }

    close() {
      const handle = this.#handle;
      attempt(() => native.busyClose(handle));
    }

    /** Returns the handle, after setting its clock to the present time. */
    #present() {
      this.#tick?.();
      return this.#handle;
    }
  }

  extend?.(BusyThrottle.prototype, partsOf);
  return BusyThrottle;
}

module.exports = { makeBusy };
