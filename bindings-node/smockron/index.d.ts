// A gatekeeper of Smockron, as middleware for Express and Connect.
import type { IncomingMessage, ServerResponse } from 'node:http';

export interface GatekeeperOptions<Request = any> {
  /** The master's accounting socket: host and port, such as '127.0.0.1:10004'. */
  master: string;
  /** Its control socket; on the next port by default. */
  control?: string | undefined;
  /** The domain at the master. */
  domain: string;
  /**
   * The tag of a request: text, bytes or a whole number, at most 1,024 bytes. The client's address by
   * default, and where the value cannot be a tag.
   */
  tag?: ((request: Request) => string | number | bigint | Uint8Array | null | undefined) | undefined;
  /** Text that the master may log; cut after 1,024 bytes. */
  logInfo?: ((request: Request) => string | number | bigint | null | undefined) | undefined;
  /** A request that would have to wait for longer is rejected; 5000 by default. */
  maxDelayMs?: number | undefined;
  /** How many requests wait at once; more are rejected. 1000 by default. */
  maxHeld?: number | undefined;
  /** Of a rejection; 503 by default. */
  statusCode?: number | undefined;
  /** The body of a rejection; 'Rejected\n' by default. */
  message?: string | undefined;
  /**
   * The share of rejections that is reported to the master, drawn at random: a number from 0 to 1;
   * true is 1, false is 0. True by default.
   */
  tellRejected?: boolean | number | undefined;
}

/** What became of requests in this process. */
export interface GatekeeperCounts {
  accepted: number;
  /** Those that were given a turn, and waited for it. */
  delayed: number;
  rejected: number;
  /** Clients that went away while they waited. */
  gaveUp: number;
  /** Requests counted by address, because `tag` returned a value that cannot be a tag. */
  untagged: number;
  /** Calls of the application's functions that threw, or values of `logInfo` that are not text. */
  failed: number;
}

/** What went to and came from the master. */
export interface MasterCounts {
  sent: number;
  dropped: number;
  received: number;
  bad: number;
}

export interface Gatekeeper<Request = any, Response = any> {
  (request: Request, response: Response, next: (error?: any) => void): void;
  readonly counts: Readonly<GatekeeperCounts>;
  readonly master: Readonly<MasterCounts>;
  /** Until when the master wants a client held, in milliseconds since 1970; 0: it does not. */
  until(tag: string | number | bigint | Uint8Array): number;
  /** Lets through what waits, and leaves the master; from then on everything passes. */
  close(): void;
}

/** Tells the master of every request, and holds or rejects whom it names. Needs the package zeromq. */
export function gatekeeper<Request extends IncomingMessage = IncomingMessage, Response extends ServerResponse = ServerResponse>(
  options: GatekeeperOptions<Request>,
): Gatekeeper<Request, Response>;
