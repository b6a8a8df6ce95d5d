// The options of all middleware. docs/node.md explains them.
import type { ClusterOptions, Decision, Domain, DomainOptions, ManualClock, NamedRuleOptions, TableOptions, Tag } from '../index.js';
import type { TrustedProxies } from './address.js';

/** What is looked for in the use of a middleware; false turns a check off. */
export interface ValidateOptions {
  createdInHandler?: boolean | undefined;
  doubleCount?: boolean | undefined;
  forwarded?: boolean | undefined;
  ipv6Tag?: boolean | undefined;
  sameDomain?: boolean | undefined;
  trustProxy?: boolean | undefined;
  window?: boolean | undefined;
}

/** What a handler of refusals gets besides the request. */
export interface Refused {
  status: number;
  body: unknown;
  decision: Decision;
}

/** What Fastify's error handlers get for a refusal, unless `body` or `handler` answers it. */
export interface RefusalError extends Error {
  code: 'DTHROTTLE_REFUSED';
  /** As the option says; 429 by default. */
  statusCode: number;
  decision: Decision;
}

/** What the body of a refusal may be: text, bytes, or an object, which is sent as JSON. */
export type Body = string | Uint8Array | object;

type Maybe<T> = T | null | undefined;

/** A tag; a number is taken as its digits. */
type Who = Tag | number | bigint;

/** The throttle: one of rate, rules, domains, windowMs with limit, file, throttle. */
export interface SourceOptions {
  /** Units per time: `'100/s'`, `'5 per 2 minutes'`, or a number per second. */
  rate?: string | number | undefined;
  /** How much may come at once; by default the rate's count. */
  burst?: string | number | undefined;
  /** Whether refused requests are charged too. */
  chargeRefused?: boolean | undefined;
  /** Several rules; a request passes when it passes under all of them. */
  rules?: readonly NamedRuleOptions[] | undefined;
  /** Several domains; `domain` says which is meant. */
  domains?: Readonly<Record<string, DomainOptions>> | undefined;
  /** With `limit`: another way to write a rate. */
  windowMs?: number | undefined;
  /** So many requests in `windowMs`. */
  limit?: number | undefined;
  /** Another name for `limit`. */
  max?: number | undefined;
  /** The path of a configuration in TOML. */
  file?: string | undefined;
  /** A throttle that there is already, or one of its domains. */
  throttle?: Domain | undefined;
  /** The cluster that this node belongs to. */
  cluster?: ClusterOptions | undefined;
  clock?: ManualClock | (() => number) | undefined;
  /** The table's name or description; false: private. By default named after the application. */
  table?: string | TableOptions | false | undefined;
  /** The domain of the throttle; with a rate, a name for it. */
  domain?: string | undefined;
}

/** Options of functions with `Given`, what they get: the request, or request and response. */
export interface Options<Given extends unknown[], Next = (error?: unknown) => unknown> extends SourceOptions {
  /** Who is counted: `'address'`, `'header:X-Api-Key'`, or a function. A value that cannot be a tag counts the address. */
  tag?: 'address' | `header:${string}` | ((...given: Given) => Maybe<Who> | Promise<Maybe<Who>>) | undefined;
  /** Another name for `tag`. */
  keyGenerator?: ((...given: Given) => Maybe<Who> | Promise<Maybe<Who>>) | undefined;
  /** Units that a request takes; 1 by default. Only what a function gives may be above the burst. */
  cost?: number | ((...given: Given) => number | Promise<number>) | undefined;
  /** Only these methods. */
  methods?: readonly string[] | undefined;
  /** Only paths that one of these matches; text is matched from end to end. */
  routes?: readonly (string | RegExp)[] | undefined;
  /** Addresses, networks and tags that are never throttled. Where tags are addresses, other text is an error. */
  allow?: readonly Tag[] | undefined;
  /** Whether a request is not to be asked about. */
  skip?: ((...given: Given) => boolean | Promise<boolean>) | undefined;
  /** Whether requests whose response has a status of 400 or more are given back. */
  skipFailedRequests?: boolean | undefined;
  /** Whether requests whose response has a status below 400 are given back. */
  skipSuccessfulRequests?: boolean | undefined;
  /** Which those are; by default those with a status below 400. */
  requestWasSuccessful?: ((...given: Given) => boolean | Promise<boolean>) | undefined;
  /** Refuse nobody, only count. */
  dryRun?: boolean | undefined;
  /** Of a refusal; 429 by default. */
  status?: number | undefined;
  /** The body of a refusal, `'problem+json'` (RFC 9457), or a function that gives one. */
  body?: Body | ((...given: [...Given, Decision]) => Maybe<Body> | Promise<Maybe<Body>>) | undefined;
  /** Answers a refusal. Fields are written already. */
  handler?: ((...given: [...Given, Next, Refused]) => unknown) | undefined;
  /** Called for every refusal, also in dry run. */
  onRefused?: ((...given: [...Given, Decision]) => unknown) | undefined;
  /** RateLimit fields as some version of the draft has them; true: the newest, 'draft-8'. */
  headers?: boolean | 'standard' | 'draft-6' | 'draft-7' | 'draft-8' | 'x-ratelimit' | 'none' | undefined;
  /** X-RateLimit fields, too. */
  legacyHeaders?: boolean | undefined;
  /** Whether refusals have Retry-After; true by default. */
  retryAfter?: boolean | undefined;
  /** Where the application finds a RateLimitInfo, a name that requests do not have already; `'rateLimit'` by default. */
  requestPropertyName?: string | undefined;
  /** Delay a request for up to so long, until its turn, instead of refusing it. */
  maxDelayMs?: number | undefined;
  /** How many requests a process delays at once, in all its threads and by all its middleware; 64 by default. */
  maxDelayed?: number | undefined;
  /** Delay a refusal for so long before it is sent. */
  throttleMilliseconds?: number | undefined;
  /** Whose X-Forwarded-For is believed. */
  trustedProxies?: TrustedProxies | undefined;
  /** How many bits of an IPv6 address tell clients apart; 64 by default. */
  ipv6Prefix?: number | undefined;
  /** Whether misuse is looked for and reported. */
  validate?: boolean | ValidateOptions | undefined;
}

/** What happened to requests in this process. */
export interface Counts {
  passed: number;
  refused: number;
  /** Would have been refused. */
  dryRun: number;
  /** Were delayed for a while. */
  delayed: number;
  /** Were gone before their turn. */
  gaveUp: number;
  /** Had no usable tag: counted by address, or passed where that is the tag and unknown. */
  untagged: number;
  /** Errors of functions that were given as options, and of the throttle. */
  failed: number;
}

/** What every middleware has besides. */
export interface Tools {
  readonly domain: Domain;
  readonly counts: Readonly<Counts>;
  /** Fills a tag's buckets. Where clients are known by address, that is one in any spelling. */
  resetKey(tag: Who): void;
  /** Ends it: all requests pass. A throttle that was made for it is closed with the last that has it. */
  close(): void;
}

/** What the application finds at a request that was asked about; all but the last two are its own fields. */
export interface RateLimitInfo {
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** When the bucket is full again. */
  readonly resetTime: Date;
  /** Who was counted, as people write it: an address is text. */
  readonly key: Tag;
  /** The tag itself: an address is bytes. */
  readonly tag: Tag;
  readonly decision: Decision;
}

/** A rate, the path of a file that ends in `.toml`, or a throttle. */
export type Source = string | number | Domain;
