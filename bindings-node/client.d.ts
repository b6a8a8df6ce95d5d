import type { Decision } from './index.js';

/** Where the daemon is, and how long to wait for it. */
export interface ClientOptions {
  /** The path of its Unix socket; the daemon's default socket if neither path nor port is given. */
  path?: string;
  /** Its TCP port, instead of a path. */
  port?: number;
  /** Its host; 127.0.0.1 by default. */
  host?: string;
  /** How long a check may take; 50 by default. */
  timeoutMs?: number;
  /** How long nobody is asked after a failure, twice as long after each further one; 100. */
  backoffMs?: number;
  /** The longest such pause; 5000 by default. */
  maxBackoffMs?: number;
  /** More checks that wait for an answer at once are allowed without asking; 100,000. */
  maxPending?: number;
  /** The daemon's token, which `refund` and `reset` need over TCP. */
  token?: string;
}

export interface ClientCheckOptions {
  /** Units; 1 by default. */
  cost?: number;
  /** The domain's name; the default domain if none is given. */
  domain?: string;
  /** Be allowed also when the turn comes within this time; `delayMs` says when. */
  maxDelayMs?: number;
  /** Take as many units as there are; `granted` says how many. */
  partial?: boolean;
}

/** An answer with all figures. */
export interface ClientDecision extends Decision {
  /** No daemon answered in time, so it is allowed. */
  readonly failedOpen: boolean;
}

export interface ClientCounts {
  /** Checks that were answered. */
  readonly asked: number;
  /** Checks that were allowed because no daemon answered in time, or not asked during a pause. */
  readonly failedOpen: number;
  /** Connections that could not be made, or broke, or were not to a daemon. */
  readonly failures: number;
}

/**
 * Asks a dthrottled. All checks share one connection, pipelined. Without an answer in time they are
 * allowed, and nobody is asked for a while.
 */
export class Client {
  constructor(options?: ClientOptions);
  /** Asks for one unit, and takes it if it passes: yes or no. */
  allow(tag: string | Uint8Array): Promise<boolean>;
  /** Asks, and takes what passes. The full answer. */
  check(tag: string | Uint8Array, options?: ClientCheckOptions): Promise<ClientDecision>;
  /** The decision that `check` would get. Takes nothing. */
  peek(tag: string | Uint8Array, options?: ClientCheckOptions): Promise<ClientDecision>;
  /** Gives units back. Whether the daemon heard of it. */
  refund(tag: string | Uint8Array, cost: number, options?: { domain?: string }): Promise<boolean>;
  /** Fills the tag's buckets. Whether the daemon heard of it. */
  reset(tag: string | Uint8Array, options?: { domain?: string }): Promise<boolean>;
  /** What was counted so far. */
  counts(): ClientCounts;
  /** Closes the connection; checks under way are allowed. Later ones are DTHROTTLE_CLOSED errors. */
  close(): void;
}
