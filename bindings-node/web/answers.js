// What becomes of requests that were asked about: they are held, paid back, refused.
'use strict';

const { Functions, isPromise } = require('./functions.js');
const { Headers } = require('./headers.js');
const { RequestProperty } = require('./property.js');

/** @import { Domain } from '../index.js' */
/** @import { Settings } from './options.js' */
/** @import { Verdict } from './verdict.js' */

/** How many requests are held, by all middleware of this process, or thread. */
let held = 0;

/** A gate as those see it who act on what it has decided. */
class Answers extends Functions {
  closed = false;
  #property;

  /** @param {Settings} settings */
  constructor(settings) {
    super(settings.reports);
    const { headers, legacyHeaders, opened, requestPropertyName, skipFailed, skipSuccessful } = settings;
    this.settings = settings;
    this.#property = new RequestProperty(requestPropertyName);
    /** Whether a request may have to be paid back after its response. */
    this.refunds = skipFailed || skipSuccessful;
    /** Writes what responses say. */
    this.headers = new Headers(headers, legacyHeaders, opened.policies);
  }

  /**
   * What is asked; with the first request there is no way back.
   * @returns {Domain}
   */
  get domain() {
    return this.settings.opened.domain;
  }

  /** Whether fields of several throttles may stand in one response. */
  get isList() {
    return this.headers.isList;
  }

  /** Ends the throttle, if it was made for this gate and no other has it. All requests pass then. */
  close() {
    this.closed = true;
    this.settings.opened.close();
  }

  /**
   * Leaves word where the application looks for it.
   * @param {any} request Or what else has it.
   * @param {Verdict} verdict
   */
  inform(request, verdict) {
    try {
      this.#property.set(request, verdict);
    } catch (error) {
      // A name that the framework has for something of its own.
      this.failed('requestPropertyName', error);
    }
  }

  // Requests that wait.

  /** Whether there is room for one more. */
  get hasRoom() {
    return held < this.settings.maxHeld;
  }

  /** Takes the room of one. */
  enter() {
    held += 1;
  }

  /** Notes that a request is held. The check has made room for it. */
  hold() {
    this.counts.delayed += 1;
  }

  /** Makes room for another: a request is held no longer. */
  leave() {
    held -= 1;
  }

  /**
   * Gives back what a request took that nobody waits for.
   * @param {Verdict} verdict
   */
  giveUp(verdict) {
    this.counts.gaveUp += 1;
    this.refund(verdict);
  }

  /** @param {Verdict} verdict */
  refund({ tag, taken }) {
    try {
      if (taken > 0 && !this.closed) this.domain.refund(tag, taken);
    } catch (error) {
      this.failed('refund', error);
    }
  }

  /** For how long to hold a refusal, for which room is made: 0 if too many requests are held. */
  slow() {
    const { refusalDelayMs } = this.settings;
    if (refusalDelayMs === 0 || !this.hasRoom) return 0;
    this.enter();
    return refusalDelayMs;
  }

  /**
   * Gives back what a request took, when the status of its response is known.
   * @param {Verdict} verdict
   * @param {boolean} successful By its status; `requestWasSuccessful` decides otherwise.
   * @param {any} request
   * @param {any} [companion]
   */
  finished(verdict, successful, request, companion) {
    const { skipFailed, skipSuccessful, wasSuccessful } = this.settings;
    let good = successful;
    if (wasSuccessful !== null) {
      const said = this.call('requestWasSuccessful', wasSuccessful, request, companion);
      if (isPromise(said)) {
        this.settle('requestWasSuccessful', said).then((value) => {
          if (value ? skipSuccessful : skipFailed) this.refund(verdict);
        });
        return;
      }
      good = Boolean(said);
    }
    if (good ? skipSuccessful : skipFailed) this.refund(verdict);
  }

  // Refusals.

  /**
   * Tells the application of a refusal, also one in dry run.
   * @param {Verdict} verdict
   * @param {any} request
   * @param {any} [companion]
   */
  tell(verdict, request, companion) {
    const { onRefused } = this.settings;
    if (onRefused === null || verdict.answer.rule === null) return;
    const told = this.call('onRefused', onRefused, request, companion, verdict.decision);
    if (isPromise(told)) this.settle('onRefused', told);
  }

  /**
   * What the body of a refusal is to be, or a promise of it.
   * @param {Verdict} verdict
   * @param {any} request
   * @param {any} [companion]
   * @returns {unknown}
   */
  said(verdict, request, companion) {
    const { message } = this.settings;
    if (typeof message !== 'function') return message;
    const said = this.call('message', message, request, companion, verdict.decision);
    return isPromise(said) ? this.settle('message', said) : said;
  }

  /**
   * The rule that decided, as clients know it.
   * @param {Verdict} verdict
   */
  policy(verdict) {
    return this.headers.policy(verdict.answer)?.name;
  }
}

exports.Answers = Answers;
