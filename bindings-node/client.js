// A client of dthrottled, for programs that ask a daemon instead of deciding by themselves. All
// checks share one connection, pipelined. When there is no answer in time it says yes, asks nobody
// for a while, and then tries again; only mistakes of the caller are errors. `client.d.ts`
// describes it, `docs/daemon.md` the protocol.
'use strict';

const { existsSync } = require('node:fs');
const { connect } = require('node:net');

const { DthrottleError, badArgument } = require('./api/errors.js');
const { toAnswer } = require('./api/records.js');

/** @import { ErrorCode } from './index.js' */
/** @import { ClientCheckOptions, ClientDecision, ClientOptions } from './client.js' */
/** @import { Socket } from 'node:net' */

/**
 * @typedef {object} Waiting A line that was sent and has yet to be answered.
 * @property {(answer: string | undefined) => void} resolve Nothing: nobody answered.
 * @property {number} deadline
 */

const OPTIONS = ['path', 'host', 'port', 'timeoutMs', 'backoffMs', 'maxBackoffMs', 'maxPending', 'token'];
const CHECK_OPTIONS = ['cost', 'domain', 'maxDelayMs', 'partial'];
const LONGEST_ANSWER = 1 << 20;
const ANSWER = /^(?:OK|NO)(?: |$)|^ERROR [a-z]+ /;

class Client {
  #place;
  #timeoutMs;
  #backoffMs;
  #maxBackoffMs;
  #maxPending;
  #token;
  /** @type {Socket | undefined} */
  #socket;
  /** @type {Waiting[]} In the order of the lines. */
  #waiting = [];
  /** @type {Buffer[]} Lines of this turn of the event loop, sent together. */
  #lines = [];
  #rest = Buffer.alloc(0);
  /** @type {NodeJS.Timeout | undefined} */
  #timer;
  #pauseMs = 0;
  #silentUntil = 0;
  #asked = 0;
  #failedOpen = 0;
  #failures = 0;
  #closed = false;

  /** @param {ClientOptions} [options] */
  constructor(options = {}) {
    known(options, OPTIONS);
    const { path, host = '127.0.0.1', port, timeoutMs = 50 } = options;
    const { backoffMs = 100, maxBackoffMs = 5000, maxPending = 100_000, token } = options;
    if (path !== undefined && port !== undefined) {
      throw badArgument('path and port: give one of the two');
    }
    if (path !== undefined && typeof path !== 'string') throw badArgument('path: give a string');
    for (const [name, value] of Object.entries({ timeoutMs, backoffMs, maxPending })) {
      if (!(value > 0 && value < Infinity)) throw badArgument(`${name}: give a number above zero`);
    }
    if (!(maxBackoffMs >= backoffMs && maxBackoffMs < Infinity)) {
      throw badArgument('maxBackoffMs: give at least backoffMs');
    }
    if (port !== undefined && !(Number.isInteger(port) && port > 0 && port < 65536)) {
      throw badArgument('port: give a number from 1 to 65535');
    }
    if (token !== undefined && !(typeof token === 'string' && /^[!-~]+$/.test(token))) {
      throw badArgument('token must be printable ASCII without blanks');
    }
    this.#place = port === undefined ? { path: path ?? usualPath() } : { host, port };
    this.#timeoutMs = timeoutMs;
    this.#backoffMs = backoffMs;
    this.#maxBackoffMs = maxBackoffMs;
    this.#maxPending = maxPending;
    this.#token = token;
  }

  /**
   * @param {string | Uint8Array} tag
   * @returns {Promise<boolean>}
   */
  async allow(tag) {
    const answer = await this.#ask(toLine(tag));
    return answer === undefined || !(answer === 'NO' || answer.startsWith('NO '));
  }

  /**
   * @param {string | Uint8Array} tag
   * @param {ClientCheckOptions} [options]
   */
  check(tag, options) {
    return this.#decide('check', tag, options);
  }

  /**
   * @param {string | Uint8Array} tag
   * @param {ClientCheckOptions} [options]
   */
  peek(tag, options) {
    return this.#decide('peek', tag, options);
  }

  /**
   * @param {string | Uint8Array} tag
   * @param {number} units
   * @param {{ domain?: string }} [options]
   */
  async refund(tag, units, options = {}) {
    known(options, ['domain']);
    return this.#tell(toQuery('refund', tag, { ...options, cost: units }, this.#token));
  }

  /**
   * @param {string | Uint8Array} tag
   * @param {{ domain?: string }} [options]
   */
  async reset(tag, options = {}) {
    known(options, ['domain']);
    return this.#tell(toQuery('reset', tag, options, this.#token));
  }

  counts() {
    return { asked: this.#asked, failedOpen: this.#failedOpen, failures: this.#failures };
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.destroy();
    this.#socket = undefined;
    this.#release();
  }

  /**
   * @param {'check' | 'peek'} verb
   * @param {string | Uint8Array} tag
   * @param {ClientCheckOptions} [options]
   * @returns {Promise<ClientDecision>}
   */
  async #decide(verb, tag, options = {}) {
    known(options, CHECK_OPTIONS);
    const answer = await this.#ask(toQuery(verb, tag, options));
    return toDecision(answer === undefined ? undefined : good(answer), options.cost ?? 1);
  }

  /** @param {Buffer} line */
  async #tell(line) {
    const answer = await this.#ask(line);
    if (answer !== undefined) good(answer);
    return answer !== undefined;
  }

  /**
   * Sends a line and gives its answer; nothing if there is none in time.
   * @param {Buffer} line
   * @returns {Promise<string | undefined>}
   */
  #ask(line) {
    if (this.#closed) {
      throw new DthrottleError('DTHROTTLE_CLOSED', 'the client is closed; make a new one');
    }
    const now = performance.now();
    if (now < this.#silentUntil || this.#waiting.length >= this.#maxPending) {
      this.#failedOpen += 1;
      return Promise.resolve(undefined);
    }
    const socket = this.#socket ?? this.#connect();
    return new Promise((resolve) => {
      this.#waiting.push({ resolve, deadline: now + this.#timeoutMs });
      if (this.#waiting.length === 1) {
        // Only who waits for an answer keeps the process.
        socket.ref();
        this.#timer ??= setTimeout(() => this.#look(), this.#timeoutMs);
        this.#timer.ref();
      }
      if (this.#lines.push(line) === 1) queueMicrotask(() => this.#send());
    });
  }

  #send() {
    const lines = this.#lines;
    this.#lines = [];
    this.#socket?.write(lines.length === 1 ? lines[0] : Buffer.concat(lines));
  }

  #connect() {
    const socket = connect({ ...this.#place, noDelay: true });
    this.#socket = socket;
    this.#rest = Buffer.alloc(0);
    socket.on('data', (bytes) => this.#socket === socket && this.#take(socket, bytes));
    socket.on('error', () => this.#end(socket));
    socket.on('close', () => this.#end(socket));
    return socket;
  }

  /**
   * The connection has ended. While nobody waits that is no failure: the daemon may close an idle
   * connection to make room for others, and the next check opens a new one.
   * @param {Socket} socket
   */
  #end(socket) {
    if (this.#waiting.length > 0) this.#fail(socket);
    else if (this.#socket === socket) this.#socket = undefined;
  }

  /**
   * @param {Socket} socket
   * @param {Buffer} bytes
   */
  #take(socket, bytes) {
    let rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const answer = rest.toString('utf8', 0, end);
      // Not of a daemon, or to no question: nor is what follows.
      if (this.#waiting.length === 0 || !ANSWER.test(answer)) return this.#fail(socket);
      this.#asked += 1;
      this.#pauseMs = 0;
      this.#waiting.shift()?.resolve(answer);
      rest = rest.subarray(end + 1);
    }
    this.#rest = rest;
    if (rest.length > LONGEST_ANSWER) return this.#fail(socket);
    if (this.#waiting.length === 0) {
      socket.unref();
      this.#timer?.unref();
    }
  }

  /** Looks whether the oldest line has waited too long. */
  #look() {
    this.#timer = undefined;
    if (this.#waiting.length === 0) return;
    const left = this.#waiting[0].deadline - performance.now();
    if (left > 0) this.#timer = setTimeout(() => this.#look(), left);
    else if (this.#socket) this.#fail(this.#socket);
  }

  /**
   * Lets go of a connection whose answers may come late, and asks nobody for a while.
   * @param {Socket} socket
   */
  #fail(socket) {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    socket.destroy();
    this.#failures += 1;
    this.#pauseMs = Math.min(Math.max(2 * this.#pauseMs, this.#backoffMs), this.#maxBackoffMs);
    this.#silentUntil = performance.now() + this.#pauseMs;
    this.#release();
  }

  #release() {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#lines = [];
    this.#failedOpen += waiting.length;
    this.#timer?.unref();
    for (const { resolve } of waiting) resolve(undefined);
  }
}

function usualPath() {
  const folder = process.getuid?.() === 0 ? undefined : process.env.XDG_RUNTIME_DIR;
  const own = `${folder}/dthrottled.sock`;
  return folder && existsSync(own) ? own : '/run/dthrottled/dthrottled.sock';
}

/**
 * @param {object} options
 * @param {string[]} names
 */
function known(options, names) {
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) {
      throw badArgument(`${name}: no such option; there are ${names.join(', ')}`);
    }
  }
}

/** @param {string | Uint8Array} tag */
function toBytes(tag) {
  if (typeof tag !== 'string' && !(tag instanceof Uint8Array)) {
    throw badArgument('a tag is a string or a Uint8Array');
  }
  const bytes = typeof tag === 'string' ? Buffer.from(tag) : Buffer.from(tag);
  if (bytes.includes(10)) {
    throw badArgument('a tag that a daemon is asked about cannot have a newline in it');
  }
  return bytes;
}

/**
 * An ordinary line, or the longer form where that would mean something else.
 * @param {string | Uint8Array} tag
 */
function toLine(tag) {
  const bytes = toBytes(tag);
  // The daemon takes a TCP connection that begins like TLS, or with a request line and a CR, for
  // another protocol.
  const long = bytes[0] === 0 || (bytes[0] === 0x16 && bytes[1] === 3) || bytes.at(-1) === 13;
  return Buffer.concat([Buffer.from(long ? '\0check\0tag=' : ''), bytes, Buffer.from('\n')]);
}

/**
 * @param {string} verb
 * @param {string | Uint8Array} tag
 * @param {ClientCheckOptions} options
 * @param {string} [token]
 */
function toQuery(verb, tag, { domain, cost, maxDelayMs, partial }, token) {
  const fields = [verb];
  if (domain !== undefined) {
    if (typeof domain !== 'string' || /[\0\n]/.test(domain)) {
      throw badArgument('domain: give a string without control characters');
    }
    fields.push(`domain=${domain}`);
  }
  if (cost !== undefined) {
    if (!Number.isSafeInteger(cost) || cost < 0) {
      throw new DthrottleError('DTHROTTLE_COST', 'cost: give a whole number from 0 on');
    }
    fields.push(`cost=${cost}`);
  }
  if (maxDelayMs !== undefined) {
    if (!(maxDelayMs >= 0 && maxDelayMs < Infinity)) {
      throw badArgument('maxDelayMs: give a number of milliseconds');
    }
    fields.push(`max_delay_ms=${Math.floor(maxDelayMs)}`);
  }
  if (partial) fields.push('partial=1');
  if (token !== undefined) fields.push(`token=${token}`);
  const head = Buffer.from(`\0${fields.join('\0')}\0tag=`);
  return Buffer.concat([head, toBytes(tag), Buffer.from('\n')]);
}

/** @param {string} answer */
function good(answer) {
  const parts = /^ERROR ([a-z]+) (.*)$/s.exec(answer);
  if (parts) {
    const code = /** @type {ErrorCode} */ (`DTHROTTLE_${parts[1].toUpperCase()}`);
    throw new DthrottleError(code, parts[2]);
  }
  return answer;
}

/**
 * @param {string | undefined} answer
 * @param {number} cost
 * @returns {ClientDecision}
 */
function toDecision(answer, cost) {
  // The name of a rule is the rest of the line.
  const [head, key, name = null] = (answer ?? `OK granted=${cost}`).split(/ (rule|deciding)=(.*)/s);
  const [word, ...fields] = head.split(' ');
  const numbers = new Map(fields.map((field) => /** @type {[string, string]} */ (field.split('='))));
  const number = (/** @type {string} */ field, usual = 0) => {
    const figure = Number(numbers.get(field) ?? usual);
    return Number.isNaN(figure) ? usual : figure;
  };
  const names = { rule: key === 'rule' ? name : null, deciding: name };
  return { ...toAnswer(word === 'OK', number, names), failedOpen: answer === undefined };
}

module.exports = { Client };
