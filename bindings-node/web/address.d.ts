// The client's address as a tag. docs/http.md has the rules.

/** The number of proxies before the application, or the list of their networks. */
export type TrustedProxies = number | readonly string[];

/** The value of the header X-Forwarded-For, or the values of all its lines in order. */
export type Forwarded = string | readonly string[] | null | undefined;

export interface ClientAddressOptions {
  /** The proxies whose X-Forwarded-For is used. Default: 0. */
  trustedProxies?: TrustedProxies | undefined;
  /** The number of leading bits of an IPv6 address that identify a client. Default: 64. */
  ipv6Prefix?: number | undefined;
}

/** Finds the client behind trusted proxies. */
export class ClientAddress {
  constructor(options?: ClientAddressOptions);
  /** The tag of the client that sent a request: 4 bytes for IPv4, 16 for IPv6, or null if its address is unknown. */
  tag(peer: string | null | undefined, forwardedFor?: Forwarded): Uint8Array | null;
  /** The whole address, not shortened to its prefix. */
  find(peer: string | null | undefined, forwardedFor?: Forwarded): Uint8Array | null;
}

/** The client's address as a tag, or null if it is unknown. For many calls, use a `ClientAddress`. */
export function clientAddress(
  peer: string | null | undefined,
  forwardedFor?: Forwarded,
  options?: ClientAddressOptions,
): Uint8Array | null;

/** Parses an address in any spelling. Returns 4 or 16 bytes, or null if the text is no address. */
export function parseAddress(text: string | null | undefined): Uint8Array | null;
