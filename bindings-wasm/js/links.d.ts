// The methods of throttles that exist only in WebAssembly: links to their cluster, whose datagrams the host carries.

import type { ClusterEvent } from './types.js';

declare module './types.js' {
  interface Throttle {
    /** Links the throttle to the cluster of its options. A newer link replaces an earlier one, which stops working. */
    link(options: LinkOptions): Link;
  }
  interface BusyThrottle {
    /** Links the busy throttle to the cluster of its options. See docs/busy.md. */
    link(options: LinkOptions): Link;
  }
}

/** The options of a link. */
export interface LinkOptions {
  /** The IP address and port of this node for its peers: `'10.0.0.1:7373'`, `'[fd00::1]:7373'`. */
  address: string;
  /**
   * The seed of all random numbers of the link: a 64-bit number, or 8 bytes. Each link of a cluster needs another seed.
   * Default: from `crypto.getRandomValues`.
   */
  seed?: bigint | Uint8Array | undefined;
  /** A number greater than that of the node's earlier links. Default: from the time. */
  incarnation?: bigint | undefined;
}

/** A datagram to send to each of these addresses, or to the multicast group. */
export interface TransmitOutput {
  to: string[] | 'group';
  datagram: Uint8Array;
  event?: undefined;
  timeoutMs?: undefined;
}

/** An event of the cluster, which is also in `throttle.events()`. */
export interface EventOutput {
  event: ClusterEvent;
  to?: undefined;
  datagram?: undefined;
  timeoutMs?: undefined;
}

/**
 * The time until `timeout()` must be called, by the throttle's clock, unless a datagram arrives before. Infinity after
 * `leave`.
 */
export interface TimeoutOutput {
  timeoutMs: number;
  to?: undefined;
  datagram?: undefined;
  event?: undefined;
}

/** The connection of a throttle to its cluster. After every other call, call `poll` until it returns `timeoutMs`. */
export interface Link {
  /** Handles a datagram from an address. Invalid datagrams are only counted. */
  receive(from: string, datagram: Uint8Array): void;
  /** Handles the end of the timeout. May be called earlier. */
  timeout(): void;
  /** Returns the next output. */
  poll(): TransmitOutput | EventOutput | TimeoutOutput;
  /** Sets the addresses at which there may be peers. */
  join(addresses: readonly string[]): void;
  /** Leaves the cluster, after reporting unreported units. The link stops working. */
  leave(): void;
}
