// A client of the daemon dthrottled. All checks share one connection and are pipelined. If the daemon does not
// answer in time, checks are allowed, and the client pauses before it connects again. Only invalid arguments are
// errors. `client.d.ts` documents the class, `docs/daemon.md` the protocol.
'use strict';

const { existsSync } = require('node:fs');
const { connect } = require('node:net');

const { DthrottleError, badArgument } = require('./api/errors.js');
const { toAnswer } = require('./api/records.js');
const { describe } = require('./api/values.js');

/** @import { ErrorCode } from './index.js' */
/** @import { ClientCheckOptions, ClientDecision, ClientOptions } from './client.js' */
/** @import { Socket } from 'node:net' */

/**
 * @typedef {object} PendingLine A line that was sent and not answered yet.
 * @property {(answer: string | undefined) => void} resolve Called with undefined if there is no answer in time.
 * @property {number} deadline
 */

const OPTIONS = ['path', 'host', 'port', 'timeoutMs', 'backoffMs', 'maxBackoffMs', 'maxPending', 'token'];
const CHECK_OPTIONS = ['cost', 'domain', 'maxDelayMs', 'partial'];
const LONGEST_ANSWER = 1 << 20;
const ANSWER_FORMAT = /^(?:OK|NO)(?: |$)|^ERROR [a-z]+ /;

class Client {
  #address;
  #timeoutMs;
  #backoffMs;
  #maxBackoffMs;
  #maxPending;
  #token;
  /** @type {Socket | undefined} */
  #socket;
  /** @type {PendingLine[]} In the order in which the lines were sent. */
  #pending = [];
  /** @type {Buffer[]} The lines of this turn of the event loop, which are sent together. */
  #lines = [];
  /** The begin of an incomplete answer. */
  #rest = Buffer.alloc(0);
  /** @type {NodeJS.Timeout | undefined} */
  #timer;
  #pauseMs = 0;
  /** The time by performance.now() until which nothing is sent. */
  #pausedUntil = 0;
  #answered = 0;
  #failedOpen = 0;
  #failures = 0;
  #closed = false;

  /** @param {ClientOptions} [options] */
  constructor(options = {}) {
    known(options, OPTIONS);
    const { path, host = '127.0.0.1', port, timeoutMs = 50 } = options;
    const { backoffMs = 100, maxBackoffMs = 5000, maxPending = 100_000, token } = options;
    if (path !== undefined && port !== undefined) {
      throw badArgument('`path` must not be given together with `port`');
    }
    if (path !== undefined && typeof path !== 'string') throw badArgument(`\`path\` must be a string, got ${describe(path)}`);
    for (const [name, value] of Object.entries({ timeoutMs, backoffMs, maxPending })) {
      if (!(value > 0 && value < Infinity)) throw badArgument(`\`${name}\` must be a number above zero, got ${describe(value)}`);
    }
    if (!(maxBackoffMs >= backoffMs && maxBackoffMs < Infinity)) {
      throw badArgument(`\`maxBackoffMs\` must be a number from backoffMs (${backoffMs}) on, got ${describe(maxBackoffMs)}`);
    }
    if (port !== undefined && !(Number.isInteger(port) && port > 0 && port < 65536)) {
      throw badArgument(`\`port\` must be a whole number from 1 to 65535, got ${describe(port)}`);
    }
    if (token !== undefined && !(typeof token === 'string' && /^[!-~]+$/.test(token))) {
      throw badArgument('`token` must be printable ASCII without blanks');
    }
    this.#address = port === undefined ? { path: path ?? defaultPath() } : { host, port };
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
    const answer = await this.#exchange(toLine(tag));
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
   * @param {number} cost
   * @param {{ domain?: string }} [options]
   */
  async refund(tag, cost, options = {}) {
    known(options, ['domain']);
    return this.#request(toQuery('refund', tag, { ...options, cost }, this.#token));
  }

  /**
   * @param {string | Uint8Array} tag
   * @param {{ domain?: string }} [options]
   */
  async reset(tag, options = {}) {
    known(options, ['domain']);
    return this.#request(toQuery('reset', tag, options, this.#token));
  }

  counts() {
    return { answered: this.#answered, failedOpen: this.#failedOpen, failures: this.#failures };
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
    const answer = await this.#exchange(toQuery(verb, tag, options));
    return toDecision(answer === undefined ? undefined : throwIfError(answer), options.cost ?? 1);
  }

  /**
   * Sends a line. Returns false if the daemon does not answer in time.
   * @param {Buffer} line
   */
  async #request(line) {
    const answer = await this.#exchange(line);
    if (answer !== undefined) throwIfError(answer);
    return answer !== undefined;
  }

  /**
   * Sends a line and returns its answer, or undefined if there is none in time.
   * @param {Buffer} line
   * @returns {Promise<string | undefined>}
   */
  #exchange(line) {
    if (this.#closed) {
      throw new DthrottleError('DTHROTTLE_CLOSED', 'the client is closed; create a new one');
    }
    const now = performance.now();
    if (now < this.#pausedUntil || this.#pending.length >= this.#maxPending) {
      this.#failedOpen += 1;
      return Promise.resolve(undefined);
    }
    const socket = this.#socket ?? this.#connect();
    return new Promise((resolve) => {
      this.#pending.push({ resolve, deadline: now + this.#timeoutMs });
      if (this.#pending.length === 1) {
        // Only a line without an answer keeps the process alive.
        socket.ref();
        this.#timer ??= setTimeout(() => this.#checkDeadline(), this.#timeoutMs);
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
    const socket = connect({ ...this.#address, noDelay: true });
    this.#socket = socket;
    this.#rest = Buffer.alloc(0);
    socket.on('data', (bytes) => this.#socket === socket && this.#receive(socket, bytes));
    socket.on('error', () => this.#end(socket));
    socket.on('close', () => this.#end(socket));
    return socket;
  }

  /**
   * Handles the end of the connection. Without pending lines it is not a failure: the daemon may close idle connections
   * to make room for others, and the next check opens a new one.
   * @param {Socket} socket
   */
  #end(socket) {
    if (this.#pending.length > 0) this.#fail(socket);
    else if (this.#socket === socket) this.#socket = undefined;
  }

  /**
   * @param {Socket} socket
   * @param {Buffer} bytes
   */
  #receive(socket, bytes) {
    let rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const answer = rest.toString('utf8', 0, end);
      // An unexpected line means that the other end is no daemon.
      if (this.#pending.length === 0 || !ANSWER_FORMAT.test(answer)) return this.#fail(socket);
      this.#answered += 1;
      this.#pauseMs = 0;
      this.#pending.shift()?.resolve(answer);
      rest = rest.subarray(end + 1);
    }
    this.#rest = rest;
    if (rest.length > LONGEST_ANSWER) return this.#fail(socket);
    if (this.#pending.length === 0) {
      socket.unref();
      this.#timer?.unref();
    }
  }

  /** Checks whether the oldest line has waited for too long. */
  #checkDeadline() {
    this.#timer = undefined;
    if (this.#pending.length === 0) return;
    const left = this.#pending[0].deadline - performance.now();
    if (left > 0) this.#timer = setTimeout(() => this.#checkDeadline(), left);
    else if (this.#socket) this.#fail(this.#socket);
  }

  /**
   * Closes a connection whose answers may come late, and pauses.
   * @param {Socket} socket
   */
  #fail(socket) {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    socket.destroy();
    this.#failures += 1;
    this.#pauseMs = Math.min(Math.max(2 * this.#pauseMs, this.#backoffMs), this.#maxBackoffMs);
    this.#pausedUntil = performance.now() + this.#pauseMs;
    this.#release();
  }

  /** Resolves all pending lines without an answer. */
  #release() {
    const waiting = this.#pending;
    this.#pending = [];
    this.#lines = [];
    this.#failedOpen += waiting.length;
    this.#timer?.unref();
    for (const { resolve } of waiting) resolve(undefined);
  }
}

/** The socket of the user's own daemon if there is one, otherwise that of the system's. */
function defaultPath() {
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
      throw badArgument(`\`${name}\` is an unknown option; the known names are ${names.join(', ')}`);
    }
  }
}

/** @param {string | Uint8Array} tag */
function toBytes(tag) {
  if (typeof tag !== 'string' && !(tag instanceof Uint8Array)) {
    throw badArgument(`\`tag\` must be a string or a Uint8Array, got ${describe(tag)}`);
  }
  const bytes = typeof tag === 'string' ? Buffer.from(tag) : Buffer.from(tag);
  if (bytes.includes(10)) {
    throw badArgument('`tag` must not contain a newline, which ends a line of the protocol');
  }
  return bytes;
}

/**
 * The short form of a check, or the long form where the daemon would misread the short one.
 * @param {string | Uint8Array} tag
 */
function toLine(tag) {
  const bytes = toBytes(tag);
  // The daemon treats a TCP connection that begins like TLS, or with a line that ends in CR, as another protocol.
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
      throw badArgument(`\`domain\` must be a string without NUL and newline, got ${describe(domain)}`);
    }
    fields.push(`domain=${domain}`);
  }
  if (cost !== undefined) {
    if (!Number.isSafeInteger(cost) || cost < 0) {
      throw new DthrottleError('DTHROTTLE_COST', `\`cost\` must be a whole number from 0 to 2^53 - 1, got ${describe(cost)}`);
    }
    fields.push(`cost=${cost}`);
  }
  if (maxDelayMs !== undefined) {
    if (!(maxDelayMs >= 0 && maxDelayMs < Infinity)) {
      throw badArgument(`\`maxDelayMs\` must be a number of milliseconds from 0 on, got ${describe(maxDelayMs)}`);
    }
    fields.push(`max_delay_ms=${Math.floor(maxDelayMs)}`);
  }
  if (partial) fields.push('partial=1');
  if (token !== undefined) fields.push(`token=${token}`);
  const head = Buffer.from(`\0${fields.join('\0')}\0tag=`);
  return Buffer.concat([head, toBytes(tag), Buffer.from('\n')]);
}

/**
 * Returns an answer, unless it is an error, which is thrown.
 * @param {string} answer
 */
function throwIfError(answer) {
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
  const number = (/** @type {string} */ field, byDefault = 0) => {
    const value = Number(numbers.get(field) ?? byDefault);
    return Number.isNaN(value) ? byDefault : value;
  };
  const names = { rule: key === 'rule' ? name : null, deciding: name };
  return { ...toAnswer(word === 'OK', number, names), failedOpen: answer === undefined };
}

module.exports = { Client };
