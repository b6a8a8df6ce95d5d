// What the API (`api/`) needs from a native part. Node's is `native.js` over the addon (`src/`);
// WebAssembly has the same. Not public: it may change in any version.
//
// Every function may throw an Error whose `code` is `DTHROTTLE_<KIND> <line> <field>`, line 0 and
// an empty field standing for none.

/** Opaque: a throttle seen through one of its domains. */
export type Handle = { readonly handle: unique symbol };

/** Opaque: a busy throttle. */
export type Busy = { readonly busy: unique symbol };

/** Opaque: a clock that is moved by hand. */
export type Clock = { readonly clock: unique symbol };

/** Opaque: a domain in `allow`, `check` and `peek`. Valid as long as its handle lives. */
export type DomainId = { readonly domainId: unique symbol };

/** Opaque: a middleware. */
export type Web = { readonly web: unique symbol };

/** Opaque: a middleware in `webDecide`. Valid as long as the middleware lives. */
export type WebId = { readonly webId: unique symbol };

export type Tag = string | Uint8Array;

export interface Native {
  /** Opens a throttle from the words of a configuration object. Without a clock: the system's. */
  fromWords(words: string[], clock: Clock | undefined): Handle;
  /** `table`: the words of a table that is added to the configuration. */
  fromToml(text: string, clock: Clock | undefined, table: string[] | undefined): Handle;
  fromFile(path: string, clock: Clock | undefined, table: string[] | undefined): Handle;

  domainId(handle: Handle): DomainId;
  domain(handle: Handle, name: string): Handle;
  name(handle: Handle): string;
  ruleNames(handle: Handle): string[];
  ruleLimits(handle: Handle): ArrayLike<number>;
  ruleWindows(handle: Handle): ArrayLike<number>;
  /** Nothing: it is shared by none. */
  tableName(handle: Handle): string | null | undefined;
  /** As `api/records.js` reads them. */
  stats(handle: Handle): ArrayLike<number>;
  /** Starts the exchange with the cluster, unless it has started or somebody else carries it. */
  start(handle: Handle): void;
  /** JSON of a ClusterStats, with keys in snake case, or of null. */
  clusterStats(handle: Handle): string;
  /** JSON of a list of ClusterEvents: those after a number, which is whole and not negative. */
  events(handle: Handle, after: number): string;
  close(handle: Handle): void;

  /** A decision as `api/records.js` reads it. The array is used again by the next call. */
  check(
    id: DomainId,
    tag: Tag,
    cost: number | undefined,
    maxDelayMs: number | undefined,
    partial: boolean | undefined,
    allowDebt?: boolean | undefined,
  ): ArrayLike<number>;
  /** As check. */
  peek(
    id: DomainId,
    tag: Tag,
    cost: number | undefined,
    maxDelayMs: number | undefined,
    partial: boolean | undefined,
    allowDebt?: boolean | undefined,
  ): ArrayLike<number>;
  allow(id: DomainId, tag: Tag, cost?: number): boolean;
  allowMany(handle: Handle, tags: Tag[]): boolean[];
  refund(handle: Handle, tag: Tag, cost: number | undefined): void;
  reset(handle: Handle, tag: Tag): void;
  chargeLocal(handle: Handle, tag: Tag, cost: number, ageMs: number | undefined): void;
  /** Milliseconds until no bucket of the tag is in debt. */
  charge(handle: Handle, tag: Tag, cost: number): number;

  /** Opens a busy throttle from the words of an object. Without a clock: the system's. */
  busyFromWords(words: string[], clock: Clock | undefined): Busy;
  /** allowed (0, 1), waitMs, limit (Infinity: none). */
  busyTurn(handle: Busy, service: string, nowMs: number | undefined): ArrayLike<number>;
  busyOnBusy(
    handle: Busy,
    service: string,
    retryAfterMs: number | undefined,
    nowMs: number | undefined,
  ): void;
  busyOnOk(handle: Busy, service: string, nowMs: number | undefined): void;
  busyLimit(handle: Busy, service: string, nowMs: number | undefined): number;
  busyRate(handle: Busy, service: string, nowMs: number | undefined): number;
  busyForget(handle: Busy, service: string): void;
  busyStart(handle: Busy): void;
  /** The throttle without rules that is its part in a cluster, where the host carries the datagrams. */
  busyNode?(handle: Busy): Handle;
  /** As `api/records.js` reads them. */
  busyStats(handle: Busy): ArrayLike<number>;
  busyClose(handle: Busy): void;

  /**
   * Opens HTTP middleware from the words of its options, with a throttle of the application, or with
   * one that is made for it or for `within`.
   */
  webOpen(
    words: string[],
    throttle: Handle | undefined,
    clock: Clock | undefined,
    within: Web | undefined,
    application: string | undefined,
    place: string,
    isTemplate: boolean,
  ): Web;
  /** Throws where `allow` has an entry that names no client. */
  webCheckAllow(web: Web): void;
  /** Names of what holds: exempts, isList, refunds, trusts. */
  webTraits(web: Web): string[];
  webId(web: Web): WebId;
  /** Names of header fields, in lower case, in the order of their values. */
  webFieldNames(web: Web): string[];
  /** The value of the first field where it is the same in all responses. */
  webPolicy(web: Web): string | null | undefined;
  webMethods(web: Web): string[] | null | undefined;
  webDomainName(web: Web): string;
  webTableName(web: Web): string | null | undefined;
  /** The domain of a throttle that was made for middleware. */
  webDomain(web: Web): Handle;
  webIsExempt(web: Web, peer: string | undefined, client: string | undefined, forwarded: string | undefined): boolean;
  /**
   * Decides about a request. Gives the client's address, empty if that is not counted, and then the
   * values of header fields, but for `webPolicy`, with line breaks between them. Undefined: the request
   * passes, without fields. Numbers are in `webAnswer`: the 11 of a decision; 0 pass, 1 delay, 2 refuse;
   * for how many milliseconds to delay it; the units taken; the kind of the tag (0 the given one, 1 the
   * address, 2 the address in place of a tag); whether there are warnings; the length of the address;
   * whether there are fields.
   *
   * Kinds of what the option `tag` gave: 0 the address is counted, 1 text or bytes, 2 nothing,
   * 3 what cannot be a tag, by the name of its type, 4 it failed.
   */
  webDecide(
    id: WebId,
    peer: string | undefined,
    client: string | undefined,
    forwarded: string | undefined,
    tagKind: number,
    tag: Tag | undefined,
    cost: number | undefined,
    isGone: boolean,
  ): string | null | undefined;
  /** The numbers of the last webDecide. */
  webAnswer: Float64Array;
  /** Tags are told by kind, as webDecide has it, and text or bytes. */
  webEndDelay(web: Web, tagKind: number, tag: Tag, taken: number, isGone: boolean): void;
  webFinish(web: Web, tagKind: number, tag: Tag, taken: number, isSuccess: boolean): void;
  /** The bytes of such a tag. */
  webTag(tagKind: number, tag: Tag): Uint8Array;
  /** The body, and status, content-type, content-length, retry-after. `body`: the words of another body. */
  webRefusal(web: Web, body: string[] | undefined, rule: number, retryAfterMs: number): [Uint8Array, string[]];
  webReset(web: Web, tag: Tag): void;
  webCountFailure(web: Web): void;
  /** passed, refused, dryRun, delayed, gaveUp, untagged, failed. */
  webCounts(web: Web): ArrayLike<number>;
  /** Codes and texts in turn. */
  webWarnings(web: Web): string[];
  webClose(web: Web): void;

  /** Throws the error about a cost that is no number. */
  badCost(shown: string): never;

  /** `followsHost`: it is moved to the host's time before every call. */
  newClock(followsHost?: boolean): Clock;
  now(clock: Clock): number;
  advance(clock: Clock, ms: number): void;
  set(clock: Clock, ms: number): void;
}
