// The options of all middleware. docs/node.md explains them.
import type { ClusterOptions, Decision, Domain, DomainOptions, ManualClock, NamedRuleOptions, TableOptions, Tag } from '../index.js';
import type { TrustedProxies } from './address.js';

/** The checks for misuse. `false` turns one off. docs/node.md describes them. */
export interface ValidateOptions {
  createdInHandler?: boolean | undefined;
  doubleCount?: boolean | undefined;
  forwarded?: boolean | undefined;
  ipv6Tag?: boolean | undefined;
  sameDomain?: boolean | undefined;
  trustProxy?: boolean | undefined;
  window?: boolean | undefined;
}

/** The last argument of the option `handler`. */
export interface Refused {
  status: number;
  body: unknown;
  decision: Decision;
}

/** The error that Fastify's error handlers get for a refusal, unless the option `body` or `handler` answers it. */
export interface RefusalError extends Error {
  code: 'DTHROTTLE_REFUSED';
  /** The option `status`. */
  statusCode: number;
  decision: Decision;
}

/** The body of a refusal: text, bytes, or an object, which is sent as JSON. */
export type Body = string | Uint8Array | object;

/** A tag as functions may return it. A number counts as its digits. */
type TagValue = Tag | number | bigint;

/** A value, or none, for which a default applies. */
type Optional<T> = T | null | undefined;

/** The throttle. Exactly one of `rate`, `rules`, `domains`, `windowMs` with `limit`, `file` and `throttle` is needed. */
export interface SourceOptions {
  /** Units per time: `'100/s'`, `'5 per 2 minutes'`, or a number per second. */
  rate?: string | number | undefined;
  /** The size of the bucket: how many units may be taken at once. Default: the units of the rate. */
  burst?: string | number | undefined;
  /** Whether refused requests are charged, too. Default: false. */
  chargeRefused?: boolean | undefined;
  /** A list of rules. A request passes if all of them allow it. */
  rules?: readonly NamedRuleOptions[] | undefined;
  /** Several domains, by name. The option `domain` selects one. */
  domains?: Readonly<Record<string, DomainOptions>> | undefined;
  /** A rate as in express-rate-limit, together with `limit`: the time in milliseconds. */
  windowMs?: number | undefined;
  /** The number of requests in `windowMs`. */
  limit?: number | undefined;
  /** Another name for `limit`. */
  max?: number | undefined;
  /** The path of a configuration in TOML. */
  file?: string | undefined;
  /** A throttle of the application, or one of its domains. */
  throttle?: Domain | undefined;
  /** The cluster that this node belongs to. */
  cluster?: ClusterOptions | undefined;
  /** A clock for tests, or a function that returns milliseconds. Default: the system's clock. */
  clock?: ManualClock | (() => number) | undefined;
  /** The table by name or options, or `false` for a private one. Default: a table with the name of the application. */
  table?: string | TableOptions | false | undefined;
  /** The name of the domain. With `rate` or `rules`, the name of a new one. */
  domain?: string | undefined;
}

/** The options of middleware. `Arguments` are those of the application's functions: the request, or request and response. */
export interface Options<Arguments extends unknown[], Next = (error?: unknown) => unknown> extends SourceOptions {
  /**
   * The tag of a request: `'address'`, `'header:X-Api-Key'`, or a function. If its result cannot be a tag, the request
   * counts under the client's address. Default: `'address'`.
   */
  tag?: 'address' | `header:${string}` | ((...given: Arguments) => Optional<TagValue> | Promise<Optional<TagValue>>) | undefined;
  /** Another name for `tag`. */
  keyGenerator?: ((...given: Arguments) => Optional<TagValue> | Promise<Optional<TagValue>>) | undefined;
  /** The units that a request takes. Only a function may return more than the burst. Default: 1. */
  cost?: number | ((...given: Arguments) => number | Promise<number>) | undefined;
  /** Limit only requests with these methods. */
  methods?: readonly string[] | undefined;
  /** Limit only paths that one of these matches. A string is a regular expression for the whole path. */
  routes?: readonly (string | RegExp)[] | undefined;
  /** Addresses, networks and tags that are never limited. If tags are addresses, other text is an error. */
  allow?: readonly Tag[] | undefined;
  /** Returns whether a request is exempt. */
  skip?: ((...given: Arguments) => boolean | Promise<boolean>) | undefined;
  /** Refund requests whose response has a status of 400 or more. */
  skipFailedRequests?: boolean | undefined;
  /** Refund requests whose response has a status below 400. */
  skipSuccessfulRequests?: boolean | undefined;
  /** Returns whether a response was successful. Default: its status is below 400. */
  requestWasSuccessful?: ((...given: Arguments) => boolean | Promise<boolean>) | undefined;
  /** Count refusals, but let all requests pass. */
  dryRun?: boolean | undefined;
  /** The status of a refusal. Default: 429. */
  status?: number | undefined;
  /** The body of a refusal, `'problem+json'` (RFC 9457), or a function that gives one. */
  body?: Body | ((...given: [...Arguments, Decision]) => Optional<Body> | Promise<Optional<Body>>) | undefined;
  /** Responds to a refusal. The header fields are set already, except in Hono, where they are set afterwards. */
  handler?: ((...given: [...Arguments, Next, Refused]) => unknown) | undefined;
  /** Called for every refusal, also in dry run. */
  onRefused?: ((...given: [...Arguments, Decision]) => unknown) | undefined;
  /** The kind of RateLimit header fields. `true` is the newest draft, `'draft-8'`; `false` is `'none'`. */
  headers?: boolean | 'standard' | 'draft-6' | 'draft-7' | 'draft-8' | 'x-ratelimit' | 'none' | undefined;
  /** Whether to send X-RateLimit fields, too. */
  legacyHeaders?: boolean | undefined;
  /** Whether refusals have the field Retry-After. Default: true. */
  retryAfter?: boolean | undefined;
  /** The property of requests that is set to a `RateLimitInfo`. Default: `'rateLimit'`. */
  requestPropertyName?: string | undefined;
  /** The longest delay of a request, in milliseconds, before it is refused instead. Default: 0. */
  maxDelayMs?: number | undefined;
  /** The most requests that a process delays at once, in all its threads and middleware. Default: 64. */
  maxDelayed?: number | undefined;
  /** The delay of a refusal before it is sent. Default: 0. */
  throttleMilliseconds?: number | undefined;
  /** The proxies whose X-Forwarded-For is used. Default: the rules of the framework. */
  trustedProxies?: TrustedProxies | undefined;
  /** The number of leading bits of an IPv6 address that identify a client. Default: 64. */
  ipv6Prefix?: number | undefined;
  /** Whether to look for misuse and report it as warnings of the process. Default: true. */
  validate?: boolean | ValidateOptions | undefined;
}

/** Numbers of requests in this process. */
export interface Counts {
  passed: number;
  refused: number;
  /** Passed only because of dry run. */
  dryRun: number;
  /** Passed after a delay. */
  delayed: number;
  /** Not handled, because the client left during the delay. */
  gaveUp: number;
  /** Had no usable tag. They were counted by address, or passed if the address was the tag and unknown. */
  untagged: number;
  /** Errors of the application's functions and of the throttle. */
  failed: number;
}

/** The properties of every middleware. */
export interface Tools {
  readonly domain: Domain;
  readonly counts: Readonly<Counts>;
  /** Fills the buckets of a tag. If tags are addresses, it accepts an address in any spelling. */
  resetKey(tag: TagValue): void;
  /** Lets all requests pass from now on. The last middleware of a throttle closes it, unless the application made it. */
  close(): void;
}

/** The information about a request, in its property `rateLimit`. `tag` and `decision` are getters. */
export interface RateLimitInfo {
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** The time at which the bucket is full again. */
  readonly resetTime: Date;
  /** The tag for people: an address is text. */
  readonly key: Tag;
  /** The tag for the methods of a throttle: an address is bytes. */
  readonly tag: Tag;
  readonly decision: Decision;
}

/** A rate, the path of a file that ends in `.toml`, or a throttle. */
export type Source = string | number | Domain;
