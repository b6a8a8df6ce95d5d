// What a response says about the throttle: header fields of several kinds, Retry-After, a problem.
//
// The standard kind is that of draft-ietf-httpapi-ratelimit-headers, versions 08 to 11, in
// structured fields (RFC 9651):
//
//     RateLimit-Policy: "default";q=200;w=2
//     RateLimit: "default";r=199;t=1
//
// Their names are sent in small letters, as HTTP/2 and Fastify have all names: Node keeps fields by
// these, and makes them of any other spelling, with every response.
//
// A leaky bucket has no window that begins and ends. `q` is the burst and `w` the time in which an
// empty bucket fills; `r` is what is left, and `t` the time until there is more.
'use strict';

const { Value } = require('./value.js');

/** @import { Answer } from '../face/quick.js' */
/** @import { Decision } from '../index.js' */

/**
 * @typedef {object} Policy A rule as clients see it.
 * @property {string} name
 * @property {number} quota
 * @property {number} windowMs How long it takes to fill the bucket.
 */

/** @typedef {string[]} Fields Names and values in turn. */

/** The largest integer of a structured field. */
const LARGEST = 1e15 - 1;

const POLICY = 'ratelimit-policy';
const STANDARD = 'draft-8';
const KINDS = [STANDARD, 'draft-7', 'draft-6'];
const PROBLEM_TYPE = 'https://iana.org/assignments/http-problem-types#quota-exceeded';

/** Writes the fields for the rules of a domain. */
class Headers {
  /** Of the rules, in their order. */
  #names;
  /** In the same order. */
  #all;
  /** The standard field RateLimit. */
  #value;
  #kind;
  #legacy;
  #policy;

  /**
   * @param {string | null} kind One of KINDS, or none.
   * @param {boolean} legacy Whether X-RateLimit fields are written, too.
   * @param {Map<string, Policy>} policies By the name of the rule.
   */
  constructor(kind, legacy, policies) {
    this.#kind = kind;
    this.#legacy = legacy;
    const all = [...policies.values()];
    this.#names = [...policies.keys()];
    this.#all = all;
    this.#value = new Value(all.map(({ name }) => toString(name)));
    const named = all.map((p) => `${toString(p.name)};q=${toInteger(p.quota)}${toWindow(p)}`);
    const bare = all.map((p) => `${toInteger(p.quota)}${toWindow(p)}`);
    this.#policy = (kind === STANDARD ? named : bare).join(', ');
    /** Whether fields of several throttles may stand in one response. */
    this.isList = kind === STANDARD;
  }

  /**
   * The fields for an answer; none for a domain without rules.
   * @param {Answer} answer
   * @returns {Fields}
   */
  fields(answer) {
    const index = answer.place < 0 ? this.#index(answer) : answer.place;
    const policy = this.#all[index];
    if (policy === undefined) return [];
    const more = moreAfter(answer, policy);
    const left = toInteger(answer.remaining);
    /** @type {Fields} */
    let fields = [];
    if (this.#kind === STANDARD) {
      fields = [POLICY, this.#policy, 'ratelimit', this.#value.of(index, left, more)];
    } else if (this.#kind === 'draft-7') {
      const value = `limit=${toInteger(policy.quota)}, remaining=${left}, reset=${more}`;
      fields.push(POLICY, this.#policy, 'ratelimit', value);
    } else if (this.#kind === 'draft-6') {
      fields.push(POLICY, this.#policy, 'ratelimit-limit', String(toInteger(policy.quota)));
      fields.push('ratelimit-remaining', String(left), 'ratelimit-reset', String(more));
    }
    if (this.#legacy) {
      // Its reset is a time of day, in seconds since 1970.
      const reset = Math.ceil(Date.now() / 1000) + more;
      fields.push('x-ratelimit-limit', String(policy.quota), 'x-ratelimit-remaining', String(answer.remaining));
      fields.push('x-ratelimit-reset', String(reset));
    }
    return fields;
  }

  /**
   * The rule that decided: the one that refused, or the first with this limit. A throttle that is not
   * of this package does not say more.
   * @param {Pick<Decision, 'rule' | 'limit'>} decision
   */
  policy(decision) {
    return this.#all[this.#index(decision)];
  }

  /** @param {Pick<Decision, 'rule' | 'limit'>} decision */
  #index({ rule, limit }) {
    return rule === null ? this.#all.findIndex(({ quota }) => quota === limit) : this.#names.indexOf(rule);
  }
}

/**
 * A field where another throttle may have written it: both stand there, or the first does.
 * @param {boolean} isList Whether both may.
 * @param {string} name
 * @param {unknown} present
 * @param {string} value
 */
function joined(isList, name, present, value) {
  if (present === undefined || !name.includes('ratelimit')) return value;
  return isList && !name.startsWith('x-') ? `${present}, ${value}` : String(present);
}

/**
 * The whole seconds after which the same request would pass, at least one.
 * @param {Pick<Decision, 'retryAfterMs'>} decision
 */
function retryAfter({ retryAfterMs }) {
  return Math.max(1, toSeconds(retryAfterMs));
}

/**
 * Whole seconds after which more is left than now; 0 when the bucket is full. What is missing comes
 * back in `resetAfterMs`, unit by unit, and the first no later than the average of all.
 * @param {Answer} decision
 * @param {Policy} policy
 */
function moreAfter(decision, { windowMs, quota }) {
  if (decision.rule !== null) return retryAfter(decision);
  const missing = decision.limit - decision.balance;
  if (missing <= 0) return 0;
  // With several rules the reset may be another's.
  return Math.max(1, toSeconds(Math.min(decision.resetAfterMs / missing, windowMs / quota)));
}

/**
 * A refusal as application/problem+json (RFC 9457).
 * @param {number} status
 * @param {string[]} violated
 * @param {number} seconds
 */
function problem(status, violated, seconds) {
  return JSON.stringify({
    type: PROBLEM_TYPE,
    title: 'Request cannot be satisfied as assigned quota has been exceeded',
    status,
    detail: `Try again in ${seconds} s.`,
    'violated-policies': violated,
  });
}

// Structured fields.

/** @param {number} ms A millionth of it, which comes of fractions, is no further second. */
const toSeconds = (ms) => Math.min(LARGEST, Math.ceil(ms / 1000 - 1e-9));

/** @param {number} number A throttle that is not of this package may have any. */
const toInteger = (number) => Math.max(0, Math.floor(Math.min(LARGEST, number))) || 0;

/** @param {Policy} policy */
const toWindow = ({ windowMs }) => `;w=${Math.max(1, toSeconds(windowMs))}`;

/** @param {string} text */
function toString(text) {
  // Strings are of printable ASCII; the rest is percent-encoded.
  const plain = text.replace(/\p{Surrogate}/gu, '\ufffd');
  const printable = plain.replace(/[^\x20-\x7e]+/g, (other) =>
    Array.from(new TextEncoder().encode(other), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  );
  return `"${printable.replace(/["\\]/g, '\\$&')}"`;
}

module.exports = { Headers, KINDS, POLICY, STANDARD, joined, moreAfter, problem, retryAfter };
