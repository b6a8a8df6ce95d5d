// The public API of dthrottle in JavaScript. docs/semantics.md defines every method and field. Times are in
// milliseconds, with fractions.

/** The string that identifies the client being counted (as UTF-8), or bytes. A Buffer is bytes. */
export type Tag = string | Uint8Array;

/** The `limit`, `remaining` and `balance` of a domain without rules: Infinity. */
export const UNLIMITED: number;

/** One rule. */
export interface RuleOptions {
  // xtask: rule
  /** Units per time: `'100/s'`, `'5 per 2 minutes'`, or a number per second. */
  rate: string | number;
  /** The size of the bucket, in units or as a duration such as `'10s'`. Default: the count of the rate. */
  burst?: string | number | undefined;
  /** Whether refused checks are charged, too. */
  chargeRefused?: boolean | undefined;
  // xtask: end
}

/** A rule in a list of them. */
export interface NamedRuleOptions extends RuleOptions {
  // xtask: rule in a list
  /** The name, unique in its domain. Default: `rule1`, `rule2`, ... */
  name?: string | undefined;
  // xtask: end
}

/** The rules of one domain: one rule, or a list of rules. `rate: 'unlimited'` allows everything. */
export interface DomainOptions extends Partial<RuleOptions> {
  // xtask: domain
  /** A list of rules, instead of `rate`. */
  rules?: readonly NamedRuleOptions[] | undefined;
  /** Whether refusals and delays are only counted, and every check is allowed at once. */
  dryRun?: boolean | undefined;
  // xtask: end
}

/** Options that every throttle accepts. */
export interface OpenOptions {
  /**
   * A manual clock, or a function that returns milliseconds since any fixed time, such as `Date.now`. If the function
   * goes back, time stands still. Default: the steady clock of the system.
   */
  clock?: ManualClock | (() => number) | undefined;
}

/** The memory that holds the buckets. See docs/table.md. */
export interface TableOptions {
  // xtask: table
  /** The name. All processes of this user with the same name share the table. */
  name?: string | undefined;
  /** The size, as a number of tags or in bytes such as `'64 MB'`. Default: a million tags. */
  size?: number | string | undefined;
  /** The group, by name or number, whose members may use the named table. */
  group?: string | number | undefined;
  /** The directory of the file of the named table. docs/table.md describes the default. */
  dir?: string | undefined;
  /**
   * Whether the name is only a default: if a table of that name belongs to another cluster, a name
   * such as `name-2` is used.
   */
  defaultName?: boolean | undefined;
  /** Whether only this process uses the table. */
  private?: boolean | undefined;
  // xtask: end
}

/** The cluster that a node belongs to. See docs/configuration.md. */
export interface ClusterOptions {
  // xtask: cluster
  /** The name. Nodes with the same name and secret are one cluster. */
  name: string;
  /**
   * The secret, of at least 16 bytes, or the file that contains it. Without a secret the cluster
   * stays on this machine.
   */
  secret?: string | { file: string } | undefined;
  /**
   * At most four keys for datagrams. All are accepted, and the first seals. Default: a key derived
   * from the secret.
   */
  packetKeys?: readonly string[] | undefined;
  /** Whether a cluster without a secret may use other machines. */
  withoutSecret?: boolean | undefined;
  /** The address and port of this node. Default: `'0.0.0.0:7373'`, or `'127.0.0.1:7373'` without a secret. */
  listen?: string | undefined;
  /** The address and port for peers, if they differ from `listen`. Port 0 is the port of `listen`. */
  advertise?: string | undefined;
  /** Peers as `'host:port'` or `'host'`, by name or address. */
  peers?: readonly string[] | undefined;
  /** The multicast group and port, instead of `peers`. */
  multicast?: string | undefined;
  /** The network interface for multicast, by name or address. */
  interface?: string | undefined;
  /** The multicast TTL. Default: 1, which stays on the local network. */
  multicastTtl?: number | undefined;
  /** The longest time between two reports of a rule. Default: `'100ms'`. */
  period?: string | undefined;
  /**
   * `'eager'` also reports when a bucket runs low, `'periodic'` exactly once per period. Default:
   * `'eager'`.
   */
  reports?: 'eager' | 'periodic' | undefined;
  /** How late a report may arrive before a conforming client can be refused: a duration, or `'auto'`. */
  tolerance?: string | undefined;
  /** Whether the nodes admit equal shares of a tag over its limit. */
  pacing?: boolean | undefined;
  /** Whether nodes report busy responses to each other; see docs/busy.md. */
  busy?: boolean | undefined;
  /** How long reports are kept for peers that missed them. Default: `'15s'`. */
  retention?: string | undefined;
  /** The most bytes of such reports. Default: `'16 MB'`. */
  retentionBytes?: number | string | undefined;
  // xtask: end
}

/** Options of a throttle that is configured by TOML. */
export interface FileOptions extends OpenOptions {
  /**
   * The table, or its name, for a configuration that describes none; otherwise an error. A table that
   * has `defaultName` also names a table that the configuration leaves unnamed.
   */
  table?: string | TableOptions | undefined;
}

/**
 * The configuration of a throttle: the rules of the domain `default`, and other domains. Problems that are no errors
 * are reported as warnings of the process with the type `DthrottleWarning`. In WebAssembly, tables have no names.
 */
export interface ThrottleOptions extends DomainOptions, OpenOptions {
  // xtask: throttle
  /** The other domains, by name. */
  domains?: Readonly<Record<string, DomainOptions>> | undefined;
  /** The table, or its name. */
  table?: string | TableOptions | undefined;
  /** The cluster of this node. */
  cluster?: ClusterOptions | undefined;
  // xtask: end
}

/** The options of `check` and `peek`. */
export interface CheckOptions {
  /** The units to take. Default: 1. */
  cost?: number | undefined;
  /** Also allow the check if the units become available within this time. `delayMs` is the time to wait. */
  maxDelayMs?: number | undefined;
  /** Take as many units as are available. `granted` is their number. */
  partial?: boolean | undefined;
  /**
   * Allow a cost above the burst. The check then needs a full bucket and leaves it in debt, in one atomic step. Has no
   * effect together with `partial`.
   */
  allowDebt?: boolean | undefined;
}

// xtask: records
/** The decision about a check. `docs/semantics.md` defines every field. */
export interface Decision {
  /** Whether the request may proceed, if necessary after a delay. */
  readonly allowed: boolean;
  /** The burst of the deciding rule, in units. Infinity in a domain without rules. */
  readonly limit: number;
  /**
   * Whole units left in the bucket of the deciding rule, 0 if it is in debt. Infinity in a domain
   * without rules.
   */
  readonly remaining: number;
  /** Like `remaining`, but negative if the bucket is in debt. Infinity in a domain without rules. */
  readonly balance: number;
  /** Units that the check took, or that it would take in the case of a peek. */
  readonly granted: number;
  /** How long to wait before proceeding. 0 in dry run, or if the check allowed no delay. */
  readonly delayMs: number;
  /**
   * Time until the check would pass without a delay. 0 if it was allowed. In dry run, the time that
   * the check would have had to wait.
   */
  readonly retryAfterMs: number;
  /** Time until every bucket of the tag is full. */
  readonly resetAfterMs: number;
  /**
   * Whether only dry run allowed the check, or skipped its delay. `rule` is set if the check would
   * have been refused.
   */
  readonly dryRun: boolean;
  /** The rule that refused, if one did. Its name. null if there is none. */
  readonly rule: string | null;
  /**
   * The deciding rule, which `limit`, `remaining` and `balance` describe, whether or not it
   * refused. Its name. null if there is none.
   */
  readonly deciding: string | null;
}

/** Counters of a throttle since it was created. */
export interface Stats {
  /** Checks allowed, including those that only dry run allowed. */
  readonly allowed: number;
  /** Checks refused. */
  readonly refused: number;
  /** Checks that only dry run allowed, or whose delay it skipped. */
  readonly dryRun: number;
  /**
   * Charges that were not counted, because the table had no room or the bucket had reached its
   * greatest time. Such checks are allowed.
   */
  readonly failedOpen: number;
  /** How often a debt was clamped to the most that a bucket can hold. */
  readonly clamped: number;
  /** Buckets that were evicted before they were full, to make room for others. */
  readonly evicted: number;
  /** Buckets that are not full now. */
  readonly buckets: number;
  /**
   * Units admitted that are never reported to other nodes, because their bucket was evicted or had
   * too many unreported units.
   */
  readonly unreported: number;
}

/** Counters of a busy throttle in this process since it was created. */
export interface BusyStats {
  /** Requests that were allowed to be sent. */
  readonly sent: number;
  /** Requests that were not allowed to be sent yet. */
  readonly refused: number;
  /** Good responses. */
  readonly good: number;
  /** Busy responses. */
  readonly busy: number;
  /** How often a busy response to this process cut a limit. */
  readonly cuts: number;
  /** Busy responses that other nodes of the cluster reported. */
  readonly remoteBusy: number;
  /** Services with a limit that were removed, because there were too many services. */
  readonly forgotten: number;
  /** Services known now, in all processes that share them. */
  readonly services: number;
  /** Other nodes of the cluster that are up now. */
  readonly peers: number;
}

/** The state of a cluster, as seen from one node. All processes of a table see the same state. */
export interface ClusterStats {
  /** The ID of this node, 0 before the first start of the exchange. 16 hexadecimal digits. */
  readonly node: string;
  /**
   * The incarnation of this node's exchange, 0 if it was never started. Later incarnations are
   * greater. 16 hexadecimal digits.
   */
  readonly incarnation: string;
  /** The ID of the process that runs the exchange, or ran it last. 0 in WebAssembly. */
  readonly pid: number;
  /** Peers that are up or were up recently. */
  readonly peers: PeerStats[];
  /** Counters of the exchange, by name. */
  readonly counts: Record<string, number>;
}

/** A peer: another node of the cluster, as seen from this node. */
export interface PeerStats {
  /** The ID of the peer. 16 hexadecimal digits. */
  readonly node: string;
  /** The incarnation of the peer's exchange. 16 hexadecimal digits. */
  readonly incarnation: string;
  /** The peer's address and port, if known. */
  readonly address: string | null;
  /** `up`, `down`, `left`, or `known` if it is not a member yet. */
  readonly state: 'up' | 'down' | 'left' | 'known';
  /** Time since a datagram of the peer last arrived. */
  readonly ageMs: number;
  /** How long a datagram takes from the peer to this node. */
  readonly delayMs: number;
  /** Reports of the peer that were applied. */
  readonly received: number;
  /** Applied reports that were missing at first. */
  readonly repaired: number;
  /** Reports that were lost. */
  readonly lost: number;
}

/** An event in the cluster. */
export interface ClusterEvent {
  /** Number of the event, counted from 1. */
  readonly number: number;
  /** Time since the event. */
  readonly ageMs: number;
  /** `peer_up`, `peer_down`, `peer_left`, `rules_differ`, `reports_lost` or `warm_start`. */
  readonly kind: string;
  /** The peer that the event is about. 16 hexadecimal digits. */
  readonly node: string;
  /** Number of reports lost, or of buckets that were copied at a warm start. 0 for other kinds. */
  readonly value: number;
}
// xtask: end

/** A rule of a domain. */
export interface DomainRule {
  name: string;
  /** The burst, in units. */
  limit: number;
  /** The time in which an empty bucket fills. */
  windowMs: number;
}

/** A named list of rules, from `throttle.domain(name)`. */
export class Domain {
  protected constructor(parts: never);

  readonly name: string;
  /** The rules in the order of the configuration. */
  readonly rules: DomainRule[];

  /** Checks units, takes them if they are available, and returns the full decision. A number is the cost. */
  check(tag: Tag, options?: number | CheckOptions): Decision;
  /** Checks units and takes them if they are available. */
  allow(tag: Tag, cost?: number): boolean;
  /** Checks one unit for each tag in order. Faster than a call for each tag. */
  allowMany(tags: Iterable<Tag>): boolean[];
  /** Returns the decision that `check` would return, without taking units. */
  peek(tag: Tag, options?: number | CheckOptions): Decision;
  /** Gives units back, for work that was not done. */
  refund(tag: Tag, cost?: number): void;
  /** Fills the buckets of the tag. */
  reset(tag: Tag): void;
  /** Charges units that were used elsewhere, the first of them `ageMs` ago, without a check. Peers are not told. */
  chargeLocal(tag: Tag, cost: number, ageMs?: number): void;
  /**
   * Charges units that were used here, without a check, and reports them to the peers of the cluster. Returns the
   * milliseconds until no bucket of the tag is below zero.
   */
  charge(tag: Tag, cost: number): number;
}

/** A rate limiter with the rules of one or more domains. It is also its own domain `default`. */
export class Throttle extends Domain {
  /**
   * Makes a throttle from a rate, such as `'100/s'` or a number per second, or from options. At least one domain must
   * have a rule, unless `rate` is `'unlimited'` or `rules` is an empty list.
   */
  constructor(config: string | number | ThrottleOptions);

  /** Makes a throttle from a configuration in TOML. */
  static fromToml(text: string, options?: FileOptions): Throttle;
  /** Makes a throttle from a TOML file. In WebAssembly this throws a `DTHROTTLE_FILE` error. */
  static fromFile(path: string, options?: FileOptions): Throttle;

  /** Returns a domain. For many calls, keep it. */
  domain(name: string): Domain;
  /** The name of the table, or null if it has none. */
  readonly tableName: string | null;
  /** The counts since the throttle was made. Also available after `close`. */
  stats(): Stats;
  /**
   * Starts the exchange with the cluster in this process. Without this call, the first check starts it. Does nothing
   * without a cluster, with a `clock`, and in WebAssembly, where the host carries the datagrams.
   */
  start(): void;
  /** The cluster as this node sees it, or null without a cluster. Also available after `close`. */
  clusterStats(): ClusterStats | null;
  /** The events of the cluster after the event with the number `after`, as far as they are still stored. */
  events(after?: number): ClusterEvent[];
  /**
   * Closes the throttle. Every later check of it and its domains throws a `DTHROTTLE_CLOSED` error. Leaves the cluster,
   * which may take up to 300 ms. Further calls do nothing.
   */
  close(): void;
}

/** The configuration of a busy throttle. */
export interface BusyOptions extends OpenOptions {
  // xtask: busy
  /** How limits fall and recover; see docs/busy.md. */
  mode?: 'live' | 'document' | undefined;
  /** The lowest limit, in requests per second. */
  floor?: number | undefined;
  /** The longest pause that a service can request, such as `'1h'`. */
  maxPause?: string | undefined;
  /** Live: the share of the rate that remains after a cut. */
  cut?: number | undefined;
  /** Live: the share of the last good rate up to which the limit recovers quickly. */
  near?: number | undefined;
  /** Live: the share of the last good rate by which the limit then grows each second. */
  step?: number | undefined;
  /** Live: how long the limit grows by `step`, such as `'5s'`. */
  patience?: string | undefined;
  /** Live: the factor by which the limit grows each second during fast recovery. */
  growth?: number | undefined;
  /** Document: the limit recovers by this multiple of itself each second. */
  recoverRate?: number | undefined;
  /** Document: the limit recovers by this number of requests each second. */
  recoverValue?: number | undefined;
  /** The table of the services. All processes with the same name share it. */
  table?: string | TableOptions | undefined;
  /** The cluster. A busy response to one node slows all its nodes. */
  cluster?: ClusterOptions | undefined;
  // xtask: end
}

/** The decision about a request to a service. */
export interface Turn {
  /** Whether the request may be sent now. */
  readonly allowed: boolean;
  /** If not allowed, the time to wait before the next call, in milliseconds. */
  readonly waitMs: number;
  /** The limit in requests per second. Infinity without a limit. */
  readonly limit: number;
}

/**
 * Limits the requests to services that answer 429 or 503, and raises the limits again as they recover. A service is any
 * name. `nowMs` is the time by the throttle's clock; default: the present time. Only `close` waits.
 */
export class BusyThrottle {
  constructor(options?: BusyOptions);
  /** Returns whether a request may be sent now. If so, it counts as sent. */
  shouldSend(service: string, nowMs?: number): boolean;
  /** Like `shouldSend`, but also returns the time to wait and the limit. */
  turn(service: string, nowMs?: number): Turn;
  /** Reports a busy response, with its Retry-After if it has one. */
  onBusy(service: string, retryAfterMs?: number, nowMs?: number): void;
  /** Reports any other response. */
  onOk(service: string, nowMs?: number): void;
  /** The limit of a service in requests per second. Infinity without a limit. */
  limit(service: string, nowMs?: number): number;
  /** The number of requests that were sent to a service in the last second. */
  rate(service: string, nowMs?: number): number;
  /** Removes a service and its limit. */
  forget(service: string): void;
  /** Starts the exchange with the cluster in this process. Without this call, the first request starts it. */
  start(): void;
  /** The counts since the throttle was made. Also available after `close`. */
  stats(): BusyStats;
  /**
   * Closes the throttle. Every later call about a service throws a `DTHROTTLE_CLOSED` error. Leaves the cluster, which
   * may take up to 300 ms. Further calls do nothing.
   */
  close(): void;
}

/** A clock for tests, which stands still until it is moved. */
export class ManualClock {
  constructor(startMs?: number);
  /** The time in milliseconds. */
  now(): number;
  /** Moves the clock forward. */
  advance(ms: number): void;
  /** Moves the clock forward to a time. An earlier time throws a `DTHROTTLE_ARGUMENT` error. */
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

/** The class of all errors of dthrottle. A refusal is not an error. */
export class DthrottleError extends Error {
  protected constructor(...parts: never);
  readonly code: ErrorCode;
  /** The wrong field of the configuration, such as `domains.api.rules[0].rate`. */
  readonly field?: string;
  /** The line in the configuration text, from 1. */
  readonly line?: number;
}
