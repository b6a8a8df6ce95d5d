// What throttles have in WebAssembly only: links with their cluster, whose datagrams the host
// carries.

import type { ClusterEvent } from './types.js';

declare module './types.js' {
  interface Throttle {
    /**
     * Links the throttle with the cluster of its options. A throttle has one link: a newer one
     * takes the place of the earlier, which then does nothing any more.
     */
    link(options: LinkOptions): Link;
  }
  interface BusyThrottle {
    /** The same for a busy throttle: docs/busy.md. */
    link(options: LinkOptions): Link;
  }
}

/** How a node takes part in its cluster. */
export interface LinkOptions {
  /** The IP address and port at which peers know this node: `'10.0.0.1:7373'`, `'[fd00::1]:7373'`. */
  address: string;
  /**
   * What all randomness of the link comes from: a number of 64 bits, or 8 bytes. No two links of a
   * cluster may have the same. By default from `crypto.getRandomValues`.
   */
  seed?: bigint | Uint8Array | undefined;
  /** Greater than that of the node's earlier links; by default made from the time. */
  incarnation?: bigint | undefined;
}

/** A datagram to send, to each of these addresses or to the multicast group. */
export interface Carried {
  to: string[] | 'group';
  datagram: Uint8Array;
  event?: undefined;
  timeoutMs?: undefined;
}

/** Something that happened; `throttle.events()` tells it as well. */
export interface Happened {
  event: ClusterEvent;
  to?: undefined;
  datagram?: undefined;
  timeoutMs?: undefined;
}

/**
 * Nothing to do for so long, by the throttle's clock, or until the next datagram; Infinity after
 * `leave`. Then `timeout()` is due.
 */
export interface Idle {
  timeoutMs: number;
  to?: undefined;
  datagram?: undefined;
  event?: undefined;
}

/** A throttle's part in its cluster. After every other call, `poll` until it gives `timeoutMs`. */
export interface Link {
  /** Takes a datagram that came from an address. Whatever is wrong with it is only counted. */
  receive(from: string, datagram: Uint8Array): void;
  /** Does what is due. Calling it early does no harm. */
  timeout(): void;
  /** What to do next. */
  poll(): Carried | Happened | Idle;
  /** Says at which addresses there may be peers, instead of those of an earlier call. */
  join(addresses: readonly string[]): void;
  /** Says goodbye, and reports what was not reported yet; then the link does nothing any more. */
  leave(): void;
}
