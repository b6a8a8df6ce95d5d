import type { Decision } from './index.js';

/** The address of the daemon, and how long to wait for it. */
export interface ClientOptions {
  /** The path of its Unix socket. Default: the default socket of the daemon, unless `port` is given. */
  path?: string;
  /** Its TCP port, instead of `path`. */
  port?: number;
  /** Its host, together with `port`. Default: `'127.0.0.1'`. */
  host?: string;
  /** After this time without an answer, a check is allowed. In milliseconds; default: 50. */
  timeoutMs?: number;
  /** The pause after a failure, doubled with each further failure. In milliseconds; default: 100. */
  backoffMs?: number;
  /** The longest pause. In milliseconds; default: 5000. */
  maxBackoffMs?: number;
  /** The most checks that wait for an answer; more are allowed at once. Default: 100,000. */
  maxPending?: number;
  /** The token of the daemon, which `refund` and `reset` need over TCP. */
  token?: string;
}

export interface ClientCheckOptions {
  /** The units to take. Default: 1. */
  cost?: number;
  /** The name of the domain. Default: the default domain. */
  domain?: string;
  /** Also allow the check if the units become available within this time. `delayMs` is the time to wait. */
  maxDelayMs?: number;
  /** Take as many units as are available. `granted` is their number. */
  partial?: boolean;
}

/** The decision of the daemon, or one that allows the check if it did not answer in time. */
export interface ClientDecision extends Decision {
  /** Whether the check was allowed because no daemon answered in time. */
  readonly failedOpen: boolean;
}

export interface ClientCounts {
  /** Lines that were answered. */
  readonly answered: number;
  /** Lines that were not answered in time, or not sent during a pause. */
  readonly failedOpen: number;
  /** Connections that failed, broke, timed out, or led to another program. */
  readonly failures: number;
}

/**
 * A client of the daemon dthrottled. All checks share one connection and are pipelined. If the daemon does not
 * answer in time, checks are allowed, and the client pauses before it connects again.
 */
export class Client {
  constructor(options?: ClientOptions);
  /** Checks one unit and takes it if it is available. */
  allow(tag: string | Uint8Array): Promise<boolean>;
  /** Checks units, takes them if they are available, and returns the full decision. */
  check(tag: string | Uint8Array, options?: ClientCheckOptions): Promise<ClientDecision>;
  /** Returns the decision that `check` would return, without taking units. */
  peek(tag: string | Uint8Array, options?: ClientCheckOptions): Promise<ClientDecision>;
  /** Gives units back. Returns false if the daemon did not answer. */
  refund(tag: string | Uint8Array, cost: number, options?: { domain?: string }): Promise<boolean>;
  /** Fills the buckets of the tag. Returns false if the daemon did not answer. */
  reset(tag: string | Uint8Array, options?: { domain?: string }): Promise<boolean>;
  /** The counts since the client was made. */
  counts(): ClientCounts;
  /** Closes the connection. Pending checks are allowed; later ones throw a `DTHROTTLE_CLOSED` error. */
  close(): void;
}
