// The public API of dthrottle in JavaScript. docs/semantics.md defines every call and every field
// exactly. Times are milliseconds, with fractions.

/** Who is counted: text (as its UTF-8), or bytes. A Buffer is bytes. */
export type Tag = string | Uint8Array;

/** The limit, remaining and balance of a domain without rules: Infinity. */
export const UNLIMITED: number;

/** One rule. */
export interface RuleOptions {
  // xtask: rule
  /** Units per time: `'100/s'`, `'5 per 2 minutes'`, or a number per second. */
  rate: string | number;
  /** The size of the bucket, in units or as a duration such as `'10s'`; by default the rate's count. */
  burst?: string | number | undefined;
  /** Whether refused checks are charged too. */
  chargeRefused?: boolean | undefined;
  // xtask: end
}

/** A rule in a list of them. */
export interface NamedRuleOptions extends RuleOptions {
  // xtask: rule in a list
  /** Unique in its domain; by default `rule1`, `rule2`, ... */
  name?: string | undefined;
  // xtask: end
}

/** The rules of one domain: one rule, or a list of rules. `rate: 'unlimited'` allows everything. */
export interface DomainOptions extends Partial<RuleOptions> {
  // xtask: domain
  /** A list of rules, instead of `rate`. */
  rules?: readonly NamedRuleOptions[] | undefined;
  /** Whether refusals are only counted. */
  dryRun?: boolean | undefined;
  // xtask: end
}

/** How a throttle is opened. */
export interface OpenOptions {
  /**
   * A clock moved by hand, or a function that returns milliseconds from any fixed zero, such as
   * `Date.now`. Where the function goes back, time stands still. By default, the host's own steady
   * clock.
   */
  clock?: ManualClock | (() => number) | undefined;
}

/** Where the buckets live, and for how many tags. docs/table.md has all of it. */
export interface TableOptions {
  // xtask: table
  /** Every process of this user that gives the same name shares the table. */
  name?: string | undefined;
  /** Room for so many tags, or bytes such as `'64 MB'`; by default for a million tags. */
  size?: number | string | undefined;
  /** The group, by name or number, whose members may all use the named table. */
  group?: string | number | undefined;
  /** The directory for the named table's file; docs/table.md describes the default. */
  dir?: string | undefined;
  /** Whether nobody chose the name: a table of another cluster is then left alone, and `name-2` taken. */
  defaultName?: boolean | undefined;
  /** Whether the table is of this process alone. */
  private?: boolean | undefined;
  // xtask: end
}

/** The cluster that a node belongs to. docs/configuration.md has all of it. */
export interface ClusterOptions {
  // xtask: cluster
  /** Nodes with the same name and secret are one cluster. */
  name: string;
  /** At least 16 bytes, or the file that has it; without one the cluster stays on this machine. */
  secret?: string | { file: string } | undefined;
  /** At most four: all are accepted, the first is used. By default one derived from the secret. */
  packetKeys?: readonly string[] | undefined;
  /** Whether addresses beyond this machine may be used without a secret. */
  withoutSecret?: boolean | undefined;
  /** Address and port of this node; by default `'0.0.0.0:7373'`, or `'127.0.0.1:7373'` without a secret. */
  listen?: string | undefined;
  /** Address and port that peers shall use, if it is another; port 0 is that of `listen`. */
  advertise?: string | undefined;
  /** `'host:port'` or `'host'`, by name or address. */
  peers?: readonly string[] | undefined;
  /** Group and port where peers are found and reports go, instead of `peers`. */
  multicast?: string | undefined;
  /** The network interface for multicast, by name or address. */
  interface?: string | undefined;
  /** 1 by default: the local network. */
  multicastTtl?: number | undefined;
  /** How often a rule is reported; by default `'100ms'`. */
  period?: string | undefined;
  /** `'eager'` (default) also reports early where it matters; `'periodic'` exactly once a period. */
  reports?: 'eager' | 'periodic' | undefined;
  /** `'auto'`, or a duration: how late reports may come without a wrong refusal. */
  tolerance?: string | undefined;
  /** Whether the nodes get equal shares of a tag that is over its limit. */
  pacing?: boolean | undefined;
  /** Whether nodes tell each other of busy answers of services that they call: docs/busy.md. */
  busy?: boolean | undefined;
  /** How long reports are kept for peers that missed them; by default `'15s'`. */
  retention?: string | undefined;
  /** How much of them at most; by default `'16 MB'`. */
  retentionBytes?: number | string | undefined;
  // xtask: end
}

/** How a throttle is opened from a configuration in TOML. */
export interface FileOptions extends OpenOptions {
  /**
   * The table, or its name, for a configuration that describes none; otherwise an error. A table that
   * has `defaultName` also names a table that the configuration leaves unnamed.
   */
  table?: string | TableOptions | undefined;
}

/**
 * A throttle: the rules of the default domain, and other domains. What cannot be as it was asked for
 * is a warning of the process, of the type DthrottleWarning. In WebAssembly a table has no name.
 */
export interface ThrottleOptions extends DomainOptions, OpenOptions {
  // xtask: throttle
  /** The other domains, by name. */
  domains?: Readonly<Record<string, DomainOptions>> | undefined;
  /** The table, or its name. */
  table?: string | TableOptions | undefined;
  /** The cluster that this node belongs to. */
  cluster?: ClusterOptions | undefined;
  // xtask: end
}

/** What a check asks for. */
export interface CheckOptions {
  /** Units; 1 by default. */
  cost?: number | undefined;
  /** Be allowed also when the turn comes within this time; `delayMs` says when. */
  maxDelayMs?: number | undefined;
  /** Take as many units as there are, if not all; `granted` says how many. */
  partial?: boolean | undefined;
  /**
   * Allow a cost above the burst: the check then needs a full bucket of that rule and leaves it in
   * debt, in one atomic step. Has no effect together with `partial`.
   */
  allowDebt?: boolean | undefined;
}

// xtask: records
/** The answer to a check. `docs/semantics.md` defines every field. */
export interface Decision {
  /** Go on. */
  readonly allowed: boolean;
  /** The burst of the deciding rule. Infinity in a domain without rules. */
  readonly limit: number;
  /** Whole units in the bucket of the deciding rule, 0 in debt. Infinity in a domain without rules. */
  readonly remaining: number;
  /** Like `remaining`, but negative in debt. Infinity in a domain without rules. */
  readonly balance: number;
  /** Units taken (by a peek: that would be). */
  readonly granted: number;
  /** How long to wait before going on; 0 unless `max_delay` was set, and in dry run. */
  readonly delayMs: number;
  /**
   * When refused, or spared a delay by dry run: time until this check would pass without waiting.
   * Otherwise 0.
   */
  readonly retryAfterMs: number;
  /** Time until every bucket of the tag is full again. */
  readonly resetAfterMs: number;
  /**
   * Refused, or allowed after a delay, but allowed at once because the domain is in dry run: `rule`
   * tells them apart.
   */
  readonly dryRun: boolean;
  /** The rule that refused. Its name; null if there is none. */
  readonly rule: string | null;
  /**
   * The deciding rule, whose figures these are, also when it did not refuse. Its name; null if
   * there is none.
   */
  readonly deciding: string | null;
}

/** What a throttle counted since it was made. */
export interface Stats {
  /** Checks allowed, those that only dry run allowed included. */
  readonly allowed: number;
  /** Checks refused. */
  readonly refused: number;
  /** Checks that were allowed, or allowed without a delay, only because of dry run. */
  readonly dryRun: number;
  /**
   * Charges that were not counted, because the table had no room or the bucket no more ticks: they
   * failed open.
   */
  readonly failedOpen: number;
  /** How often the debt of a bucket went beyond what a bucket can hold. */
  readonly clamped: number;
  /** Buckets that were forgotten before they were full, because the table had no better room for others. */
  readonly evicted: number;
  /** Buckets that are not full now. */
  readonly buckets: number;
  /**
   * Units admitted that no other node will hear about: of buckets that were forgotten, or more than
   * one bucket could keep for the next report.
   */
  readonly unreported: number;
}

/** What a busy throttle counted in this process since it was made. */
export interface BusyStats {
  /** Requests that could be sent. */
  readonly sent: number;
  /** Requests that should not be sent yet. */
  readonly refused: number;
  /** Good answers. */
  readonly good: number;
  /** Busy answers. */
  readonly busy: number;
  /** How often a limit was cut by a busy answer of its own. */
  readonly cuts: number;
  /** Busy responses that other nodes of the cluster reported. */
  readonly remoteBusy: number;
  /** Services with a limit that were forgotten, because there were too many others. */
  readonly forgotten: number;
  /** Services known now, by all processes that share them. */
  readonly services: number;
  /** Other nodes of the cluster that are there now. */
  readonly peers: number;
}

/** A cluster, as seen from one node. All processes of a table see the same. */
export interface ClusterStats {
  /** This node; zero before the start. 16 hexadecimal digits. */
  readonly node: string;
  /**
   * The present life of its exchange; zero: it has not begun. Later lives are greater. 16
   * hexadecimal digits.
   */
  readonly incarnation: string;
  /** The process that runs the exchange, or did last; 0 in WebAssembly. */
  readonly pid: number;
  /** Peers that are there or were lately. */
  readonly peers: PeerStats[];
  /** What was counted, by name. */
  readonly counts: Record<string, number>;
}

/** A peer: another node of the cluster, as seen from one node. */
export interface PeerStats {
  /** Which node. 16 hexadecimal digits. */
  readonly node: string;
  /** In which life. 16 hexadecimal digits. */
  readonly incarnation: string;
  /** Its address and port, as far as they are known. */
  readonly address: string | null;
  /** `up`, `down`, `left`, or `known` if it has yet to become a member. */
  readonly state: 'up' | 'down' | 'left' | 'known';
  /** How long ago it was last heard. */
  readonly ageMs: number;
  /** How long a datagram takes. */
  readonly delayMs: number;
  /** Reports applied. */
  readonly received: number;
  /** Those of them that had been missing at first. */
  readonly repaired: number;
  /** Reports that are lost for good. */
  readonly lost: number;
}

/** Something that happened in the cluster. */
export interface ClusterEvent {
  /** Counts events, from 1. */
  readonly number: number;
  /** How long ago it happened. */
  readonly ageMs: number;
  /** `peer_up`, `peer_down`, `peer_left`, `rules_differ`, `reports_lost` or `warm_start`. */
  readonly kind: string;
  /** The peer it is about. 16 hexadecimal digits. */
  readonly node: string;
  /** How many, where that matters: reports lost, buckets taken over at the start. */
  readonly value: number;
}
// xtask: end

/** A rule at work. */
export interface DomainRule {
  name: string;
  /** Its burst, in units. */
  limit: number;
  /** The time in which an empty bucket fills. */
  windowMs: number;
}

/** A named list of rules. It comes from `throttle.domain(name)`. */
export class Domain {
  protected constructor(parts: never);

  readonly name: string;
  /** The rules, in the order in which they were given. */
  readonly rules: DomainRule[];

  /** Asks for units, and takes them if they pass. A number asks for so many. */
  check(tag: Tag, options?: number | CheckOptions): Decision;
  /** Asks for units, and takes them if they pass: yes or no. */
  allow(tag: Tag, cost?: number): boolean;
  /**
   * Asks for one unit for each tag in turn, and takes what passes. Faster than one call for each
   * where tags are many.
   */
  allowMany(tags: Iterable<Tag>): boolean[];
  /** The decision that a check would get. Takes nothing. */
  peek(tag: Tag, options?: number | CheckOptions): Decision;
  /** Gives units back: for work that was not done, or a wait that was given up. */
  refund(tag: Tag, cost?: number): void;
  /** Fills the tag's buckets. */
  reset(tag: Tag): void;
  /** Charges units that were used elsewhere, the first of them `ageMs` ago, without asking. */
  chargeLocal(tag: Tag, cost: number, ageMs?: number): void;
  /**
   * Charges units that were used here, without asking, and tells the peers of the cluster. May take a
   * bucket below zero: the milliseconds until none of the tag's buckets is.
   */
  charge(tag: Tag, cost: number): number;
}

/** Holds every tag to the rules of its domains. It stands itself for the domain `default`. */
export class Throttle extends Domain {
  /**
   * From a rate, `'100/s'` or a number per second, or from options. At least one domain must have a
   * rule, unless `rate` is `'unlimited'` or `rules` is an empty list.
   */
  constructor(config: string | number | ThrottleOptions);

  /** From a configuration in TOML. */
  static fromToml(text: string, options?: FileOptions): Throttle;
  /** From a file of TOML. In WebAssembly there are no files: a DTHROTTLE_FILE error. */
  static fromFile(path: string, options?: FileOptions): Throttle;

  /** A handle to a domain. Resolve it once and keep it. */
  domain(name: string): Domain;
  /** The name of the table; null: it is shared by none. */
  readonly tableName: string | null;
  /** What was counted so far, also after close. */
  stats(): Stats;
  /**
   * Starts the exchange with the cluster in this process, unless it has started: otherwise the
   * first check does. Without a cluster, with a clock of one's own, and in WebAssembly, where the
   * host carries the datagrams, it does nothing.
   */
  start(): void;
  /** The cluster, as this node sees it, also after close; null: it belongs to none. */
  clusterStats(): ClusterStats | null;
  /**
   * What happened in the cluster after the event of this number, as far as it is still known: go
   * on with the number of the last one.
   */
  events(after?: number): ClusterEvent[];
  /**
   * Ends the throttle: every later call about a tag, on it or its domains, is a DTHROTTLE_CLOSED
   * error. Says goodbye to the cluster, which may take up to 300 ms. May be called again.
   */
  close(): void;
}

/** What a busy throttle is told. */
export interface BusyOptions extends OpenOptions {
  // xtask: busy
  /** By which arithmetic limits fall and recover: docs/busy.md. */
  mode?: 'live' | 'document' | undefined;
  /** The least that a limit falls to, in requests a second. */
  floor?: number | undefined;
  /** The longest pause that a service can ask for, such as `'1h'`. */
  maxPause?: string | undefined;
  /** Live: what a cut leaves of the rate. */
  cut?: number | undefined;
  /** Live: up to which share of the last good rate the limit comes back quickly. */
  near?: number | undefined;
  /** Live: by which share of it the limit then goes up in a second. */
  step?: number | undefined;
  /** Live: for how long, such as `'5s'`. */
  patience?: string | undefined;
  /** Live: what the limit multiplies by in a second where it is quick. */
  growth?: number | undefined;
  /** Document: each second, so many times the limit comes back to it. */
  recoverRate?: number | undefined;
  /** Document: each second, so many requests come back to the limit. */
  recoverValue?: number | undefined;
  /** Where services are remembered: with a name, by all processes that give it. */
  table?: string | TableOptions | undefined;
  /** The cluster whose nodes tell each other: a busy answer that one is given slows all. */
  cluster?: ClusterOptions | undefined;
  // xtask: end
}

/** Whether a request may be sent now. */
export interface Turn {
  readonly allowed: boolean;
  /** If it may not: when it is worth asking again. */
  readonly waitMs: number;
  /** Requests a second; Infinity: there is no limit. */
  readonly limit: number;
}

/**
 * Slows down what is sent to services that say they are busy, and comes back gradually. A service is
 * any name. `nowMs` is the time by the throttle's clock, read if it is left out. No call but `close`
 * waits.
 */
export class BusyThrottle {
  constructor(options?: BusyOptions);
  /** Whether a request may be sent now. If it may, it counts as sent. */
  shouldSend(service: string, nowMs?: number): boolean;
  /** The same, with the wait and the limit. */
  turn(service: string, nowMs?: number): Turn;
  /** The service said that it is busy, and maybe for how long nothing should be sent. */
  onBusy(service: string, retryAfterMs?: number, nowMs?: number): void;
  /** The service gave any other answer. */
  onOk(service: string, nowMs?: number): void;
  /** The limit of a service in requests a second; Infinity: there is none. */
  limit(service: string, nowMs?: number): number;
  /** How many requests were sent to a service in the last second. */
  rate(service: string, nowMs?: number): number;
  /** Forgets a service, and with it its limit. */
  forget(service: string): void;
  /** Starts the exchange with the cluster in this process, unless it has; else the first request does. */
  start(): void;
  /** What was counted so far, also after close. */
  stats(): BusyStats;
  /**
   * Ends the throttle: every later call about a service is a DTHROTTLE_CLOSED error. Says goodbye to
   * the cluster, which may take up to 300 ms. May be called again.
   */
  close(): void;
}

/** A clock that stands still until it is moved: for tests. */
export class ManualClock {
  constructor(startMs?: number);
  /** Milliseconds since the clock's zero. */
  now(): number;
  /** Moves the clock on. */
  advance(ms: number): void;
  /** Moves the clock on to a time. An earlier one is a DTHROTTLE_ARGUMENT error. */
  set(ms: number): void;
}

// xtask: error codes
export type ErrorCode =
  | 'DTHROTTLE_CONFIG'
  | 'DTHROTTLE_COST'
  | 'DTHROTTLE_DOMAIN'
  | 'DTHROTTLE_CLOSED'
  | 'DTHROTTLE_ARGUMENT'
  | 'DTHROTTLE_FILE'
  | 'DTHROTTLE_INTERNAL';
// xtask: end

/** Every error that dthrottle throws. Being throttled is an answer, not an error. */
export class DthrottleError extends Error {
  protected constructor(...parts: never);
  readonly code: ErrorCode;
  /** The field of the configuration that is wrong, such as `domains.api.rules[0].rate`. */
  readonly field?: string;
  /** The line of the configuration text, from 1. */
  readonly line?: number;
}
