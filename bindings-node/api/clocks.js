// Where a throttle's time comes from: the native part's own clock, a clock moved by hand, or a
// function of the host, which is read before each call.
'use strict';

const { attempt, badArgument } = require('./errors.js');
const { describe, toNumber } = require('./values.js');

/** @import { Clock, Native } from '../surface.js' */

/**
 * @typedef {object} Source A clock as a throttle uses it.
 * @property {Clock | undefined} clock The native clock; the native part's own when there is none.
 * @property {(() => void) | undefined} tick Brings the native clock to the host's time.
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
   * A clock that a function of the host moves. Where that goes back, time stands still.
   * @param {() => unknown} now
   * @param {boolean} [isDefault] Whether nobody chose it, so that it may be as well any other clock of the host.
   * @returns {Source}
   */
  function hostClock(now, isDefault) {
    const clock = attempt(() => native.newClock(isDefault));
    let latest = 0;
    function read() {
      try {
        return now();
      } catch (caught) {
        throw badArgument('clock: the function threw', caught);
      }
    }
    return {
      clock,
      tick() {
        const ms = toNumber('clock: what the function returns', read());
        // Whatever is no time at all goes on to the native part, which says so.
        if (ms >= 0 && ms <= latest) return;
        attempt(() => native.set(clock, ms));
        latest = ms;
      },
    };
  }

  /**
   * The clock that a user chose.
   * @param {unknown} choice
   * @returns {Source}
   */
  function toSource(choice) {
    if (choice === undefined) return defaultNow ? hostClock(defaultNow, true) : { clock: undefined, tick: undefined };
    if (typeof choice === 'function') return hostClock(/** @type {() => unknown} */ (choice));
    const clock = nativeClock(choice);
    if (clock) return { clock, tick: undefined };
    throw badArgument(
      `clock: must be a ManualClock or a function that returns milliseconds, not ${describe(choice)}`,
    );
  }

  return { ManualClock, toSource };
}

module.exports = { makeClocks };
