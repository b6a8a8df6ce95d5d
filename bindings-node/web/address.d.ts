// Who is the client? docs/node.md has the rules.

/** How many proxies stand before the application, or which networks they are in. */
export type TrustedProxies = number | readonly string[];

/** The header X-Forwarded-For: its text, or the text of every line in their order. */
export type Forwarded = string | readonly string[] | null | undefined;

export interface ClientAddressOptions {
  /** Whose X-Forwarded-For is believed; 0 by default: nobody's. */
  trustedProxies?: TrustedProxies | undefined;
  /** How many bits of an IPv6 address tell clients apart; 64 by default. */
  ipv6Prefix?: number | undefined;
}

/** Finds the client behind trusted proxies. */
export class ClientAddress {
  constructor(options?: ClientAddressOptions);
  /** A tag for whoever sent a request: 4 bytes for IPv4, 16 for IPv6; null: nobody knows. */
  tag(peer: string | null | undefined, forwardedFor?: Forwarded): Uint8Array | null;
  /** The whole address, not cut to its prefix. */
  find(peer: string | null | undefined, forwardedFor?: Forwarded): Uint8Array | null;
}

/** The client's address as a tag. To ask often, make a ClientAddress once. */
export function clientAddress(
  peer: string | null | undefined,
  forwardedFor?: Forwarded,
  options?: ClientAddressOptions,
): Uint8Array | null;

/** An address in any spelling, as 4 or 16 bytes; null if it is none. */
export function parseAddress(text: string | null | undefined): Uint8Array | null;
