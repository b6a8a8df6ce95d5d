// A gatekeeper for Smockron, as middleware for Express and Connect.
import type { IncomingMessage, ServerResponse } from 'node:http';

export interface GatekeeperOptions<Request = any> {
  /** Host and port of the master's accounting socket, such as `'127.0.0.1:10004'`. */
  master: string;
  /** Host and port of its control socket. Default: the next port. */
  control?: string | undefined;
  /** The name of the domain at the master. */
  domain: string;
  /**
   * Returns the tag of a request: text, bytes or a whole number, of at most 1,024 bytes. Default: the client's
   * address. Another value counts the client's address, too.
   */
  tag?: ((request: Request) => string | number | bigint | Uint8Array | null | undefined) | undefined;
  /** Returns text that the master may log. It is cut after 1,024 bytes. */
  logInfo?: ((request: Request) => string | number | bigint | null | undefined) | undefined;
  /** A request that would have to wait for longer is rejected. In milliseconds; default: 5000. */
  maxDelayMs?: number | undefined;
  /** How many requests may wait at once; more are rejected. Default: 1000. */
  maxDelayed?: number | undefined;
  /** The status of a rejection. Default: 503. */
  status?: number | undefined;
  /** The body of a rejection. Default: `'Rejected\n'`. */
  body?: string | undefined;
  /**
   * The share of rejections that is reported to the master, chosen at random: a number from 0 to 1, `true` for 1 or
   * `false` for 0. Default: `true`.
   */
  tellRejected?: boolean | number | undefined;
}

/** Numbers of requests in this process. */
export interface GatekeeperCounts {
  accepted: number;
  /** Requests that waited for a turn. */
  delayed: number;
  rejected: number;
  /** Requests whose client left while they waited. */
  gaveUp: number;
  /** Requests counted by address, because `tag` returned a value that cannot be a tag. */
  untagged: number;
  /** Calls of the application's functions that threw, or values of `logInfo` that are not text. */
  failed: number;
}

/** Numbers of messages to and from the master. */
export interface MasterCounts {
  sent: number;
  /** Messages that were not sent, because too many were waiting. */
  dropped: number;
  /** Delays that the master sent. */
  received: number;
  /** Messages of the master that could not be read. */
  bad: number;
}

export interface Gatekeeper<Request = any, Response = any> {
  (request: Request, response: Response, next: (error?: any) => void): void;
  readonly counts: Readonly<GatekeeperCounts>;
  readonly master: Readonly<MasterCounts>;
  /** The time until which the client must wait, in milliseconds since 1970, or 0 if it need not. */
  until(tag: string | number | bigint | Uint8Array): number;
  /** Lets the waiting requests pass and disconnects from the master. From then on all requests pass. */
  close(): void;
}

/** Returns middleware that reports requests to a master, and delays or rejects those of clients that the master names. Needs the package zeromq. */
export function gatekeeper<Request extends IncomingMessage = IncomingMessage, Response extends ServerResponse = ServerResponse>(
  options: GatekeeperOptions<Request>,
): Gatekeeper<Request, Response>;
