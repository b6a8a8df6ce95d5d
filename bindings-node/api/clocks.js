// The clocks of throttles: that of the native part, a manual clock, or a function of the host, which is called before
// each native call.
'use strict';

const { attempt, badArgument } = require('./errors.js');
const { describe, toNumber } = require('./values.js');

/** @import { Clock, Native } from '../surface.js' */

/**
 * @typedef {object} ClockSource The clock of a throttle.
 * @property {Clock | undefined} clock The native clock, or undefined for that of the native part.
 * @property {(() => void) | undefined} tick Sets the native clock to the host's time.
 */

/**
 * @param {Native} native
 * @param {(() => number) | undefined} defaultNow
 */
function makeClocks(native, defaultNow) {
  /** @type {(value: unknown) => Clock | undefined} */
  let nativeClock = () => undefined;

  class ManualClock {
    #clock = attempt(() => native.newClock());

    static {
      nativeClock = (value) =>
        typeof value === 'object' && value !== null && #clock in value ? value.#clock : undefined;
    }

    /** @param {number} [startMs] */
    constructor(startMs) {
      if (startMs === undefined) return;
      const clock = this.#clock;
      const to = toNumber('startMs', startMs);
      attempt(() => native.set(clock, to));
    }

    now() {
      const clock = this.#clock;
      return attempt(() => native.now(clock));
    }

    /** @param {number} ms */
    advance(ms) {
      const clock = this.#clock;
      const by = toNumber('ms', ms);
      attempt(() => native.advance(clock, by));
    }

    /** @param {number} ms */
    set(ms) {
      const clock = this.#clock;
      const to = toNumber('ms', ms);
      attempt(() => native.set(clock, to));
    }
  }

  /**
   * A clock that follows a function of the host. If the function goes back, time stands still.
   * @param {() => unknown} now
   * @param {boolean} [isDefault] Whether it is the default clock of the package.
   * @returns {ClockSource}
   */
  function hostClock(now, isDefault) {
    const clock = attempt(() => native.newClock(isDefault));
    let latest = 0;
    function read() {
      try {
        return now();
      } catch (caught) {
        throw badArgument('`clock` must be a function that does not throw', caught);
      }
    }
    return {
      clock,
      tick() {
        const ms = toNumber('clock: what the function returns', read());
        // The native part throws the error about an invalid time.
        if (ms >= 0 && ms <= latest) return;
        attempt(() => native.set(clock, ms));
        latest = ms;
      },
    };
  }

  /**
   * The clock for the option `clock`.
   * @param {unknown} choice
   * @returns {ClockSource}
   */
  function toSource(choice) {
    if (choice === undefined) return defaultNow ? hostClock(defaultNow, true) : { clock: undefined, tick: undefined };
    if (typeof choice === 'function') return hostClock(/** @type {() => unknown} */ (choice));
    const clock = nativeClock(choice);
    if (clock) return { clock, tick: undefined };
    throw badArgument(
      `\`clock\` must be a ManualClock or a function that returns milliseconds, got ${describe(choice)}`,
    );
  }

  return { ManualClock, toSource };
}

module.exports = { makeClocks };
