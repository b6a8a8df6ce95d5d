// Whether a request was given up while it waits. It is heard once and remembered: an emitter of events
// does not say so again.
'use strict';

/**
 * What may say it: an AbortSignal, an emitter with an event of that name (undici takes one), or a
 * CancelToken of axios.
 * @typedef {any} Source
 */

class Abort {
  aborted = false;
  /** @type {unknown} What the request is to fail with. */
  reason;
  /** @type {(() => void) | undefined} Ends the pause. */
  #wake;
  /** @type {(() => void)[]} */
  #leave = [];

  /** @param {Source[]} sources */
  constructor(...sources) {
    for (const source of sources) if (source) this.#listen(source);
  }

  /** @param {Source} source */
  #listen(source) {
    const heard = () => this.tell(source.reason);
    // A token that was cancelled has only the reason.
    if (source.aborted || (source.throwIfRequested && source.reason)) heard();
    else if (source.addEventListener) {
      source.addEventListener('abort', heard);
      this.#leave.push(() => source.removeEventListener?.('abort', heard));
    } else if (source.on) {
      source.on('abort', heard);
      this.#leave.push(() => source.removeListener?.('abort', heard));
    } else if (source.subscribe) {
      source.subscribe(heard);
      this.#leave.push(() => source.unsubscribe?.(heard));
    }
  }

  /** @param {unknown} [reason] */
  tell(reason) {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason ?? new DOMException('This operation was aborted', 'AbortError');
    this.#wake?.();
  }

  throwIfAborted() {
    if (this.aborted) throw this.reason;
  }

  /**
   * Until so long is over, or it is given up.
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

  /** Listens no more: it waits no more. */
  end() {
    for (const leave of this.#leave.splice(0)) leave();
  }
}

module.exports = { Abort };
