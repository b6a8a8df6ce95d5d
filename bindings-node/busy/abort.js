// Notices that a request is aborted while it waits for its turn. The state is kept, because an event emitter
// reports the abort only once.
'use strict';

/**
 * Something that can abort a request: an AbortSignal, an event emitter with the event `abort` (undici accepts
 * one), or a CancelToken of axios.
 * @typedef {any} Source
 */

class Abort {
  aborted = false;
  /** @type {unknown} The error that the request fails with. */
  reason;
  /** @type {(() => void) | undefined} Ends the pause. */
  #wake;
  /** @type {(() => void)[]} */
  #removeListeners = [];

  /** @param {Source[]} sources */
  constructor(...sources) {
    for (const source of sources) if (source) this.#listen(source);
  }

  /** @param {Source} source */
  #listen(source) {
    const onAbort = () => this.abort(source.reason);
    // A cancelled CancelToken has no property `aborted`, only a reason.
    if (source.aborted || (source.throwIfRequested && source.reason)) onAbort();
    else if (source.addEventListener) {
      source.addEventListener('abort', onAbort);
      this.#removeListeners.push(() => source.removeEventListener?.('abort', onAbort));
    } else if (source.on) {
      source.on('abort', onAbort);
      this.#removeListeners.push(() => source.removeListener?.('abort', onAbort));
    } else if (source.subscribe) {
      source.subscribe(onAbort);
      this.#removeListeners.push(() => source.unsubscribe?.(onAbort));
    }
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason ?? new DOMException('This operation was aborted', 'AbortError');
    this.#wake?.();
  }

  throwIfAborted() {
    if (this.aborted) throw this.reason;
  }

  /**
   * Waits for the time, or until the request is aborted.
   * @param {number} ms
   * @returns {Promise<void>}
   */
  pause(ms) {
    if (this.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Removes all listeners. */
  end() {
    for (const remove of this.#removeListeners.splice(0)) remove();
  }
}

module.exports = { Abort };
