// The functions that the API (`api/`) needs from a native part. Node's is `native.js` over the addon (`src/`);
// WebAssembly has the same. Not public: it may change in any version.
//
// Every function may throw an Error whose `code` is `DTHROTTLE_<KIND> <line> <field>`. Line 0 and an empty field mean
// that there is none.

/** Opaque: a throttle and one of its domains. */
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
  /** Opens a throttle from an encoded configuration object. Without a clock it uses that of the system. */
  fromConfig(encoded: string[], clock: Clock | undefined): Handle;
  /** `table` is an encoded table that is added to the configuration. */
  fromToml(text: string, clock: Clock | undefined, table: string[] | undefined): Handle;
  fromFile(path: string, clock: Clock | undefined, table: string[] | undefined): Handle;

  domainId(handle: Handle): DomainId;
  domain(handle: Handle, name: string): Handle;
  name(handle: Handle): string;
  ruleNames(handle: Handle): string[];
  ruleLimits(handle: Handle): ArrayLike<number>;
  ruleWindows(handle: Handle): ArrayLike<number>;
  /** The name of the table, if it has one. */
  tableName(handle: Handle): string | null | undefined;
  /** As `api/records.js` reads them. */
  stats(handle: Handle): ArrayLike<number>;
  /** Starts the exchange with the cluster, unless it has started or the host carries the datagrams. */
  start(handle: Handle): void;
  /** JSON of a ClusterStats, with keys in snake case, or of null. */
  clusterStats(handle: Handle): string;
  /** JSON of the list of ClusterEvents after the one with a number, which is whole and not negative. */
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
  /** Like check. */
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
  /** Returns the milliseconds until no bucket of the tag is in debt. */
  charge(handle: Handle, tag: Tag, cost: number): number;

  /** Opens a busy throttle from an encoded object. Without a clock it uses that of the system. */
  busyFromConfig(encoded: string[], clock: Clock | undefined): Busy;
  /** Returns allowed (0 or 1), waitMs, and limit (Infinity without one). */
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
  /** The throttle without rules that exchanges busy responses, if the host carries the datagrams. */
  busyNode?(handle: Busy): Handle;
  /** As `api/records.js` reads them. */
  busyStats(handle: Busy): ArrayLike<number>;
  busyClose(handle: Busy): void;

  /**
   * Opens HTTP middleware from its encoded options, with a throttle of the application, the throttle of the middleware
   * `within`, or a new one.
   */
  webOpen(
    encoded: string[],
    throttle: Handle | undefined,
    clock: Clock | undefined,
    within: Web | undefined,
    application: string | undefined,
    namePart: string,
    isTemplate: boolean,
  ): Web;
  /** Throws if `allow` has an entry that cannot name a client. */
  webCheckAllow(web: Web): void;
  /** The traits that apply: exempts, isList, refunds, trusts. */
  webTraits(web: Web): string[];
  webId(web: Web): WebId;
  /** The names of the header fields, in lower case, in the order of their values. */
  webFieldNames(web: Web): string[];
  /** The value of the first field, if it is the same in all responses. */
  webPolicy(web: Web): string | null | undefined;
  webMethods(web: Web): string[] | null | undefined;
  webDomainName(web: Web): string;
  webTableName(web: Web): string | null | undefined;
  /** The domain of a throttle that was made for middleware. */
  webDomain(web: Web): Handle;
  webIsExempt(web: Web, peer: string | undefined, client: string | undefined, forwarded: string | undefined): boolean;
  /**
   * Decides about a request. Returns the client's address (empty if it is not counted), followed by the values of the
   * header fields except `webPolicy`, separated by line breaks. Undefined if the request passes without fields.
   *
   * Afterwards `webAnswer` has the 11 numbers of the decision, and then: the action (0 pass, 1 delay, 2 refuse); the
   * delay in milliseconds; the units taken; the kind of the tag (0 the given one, 1 the address, 2 the address in place
   * of an unusable tag); whether there are warnings; the length of the address; whether there are fields.
   *
   * `tagKind` is 0 to count the address, 1 for text or bytes, 2 for a missing header, 3 for an unusable value (`tag` is
   * then the name of its type), 4 if the function failed.
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
  /** `tagKind` and `tag` are those of the decision. */
  webEndDelay(web: Web, tagKind: number, tag: Tag, taken: number, isGone: boolean): void;
  webFinish(web: Web, tagKind: number, tag: Tag, taken: number, isSuccess: boolean): void;
  /** The bytes of such a tag, as it is counted. */
  webTag(tagKind: number, tag: Tag): Uint8Array;
  /** The body, and the status, content-type, content-length and retry-after. `body` is another body, encoded. */
  webRefusal(web: Web, body: string[] | undefined, rule: number, retryAfterMs: number): [Uint8Array, string[]];
  webReset(web: Web, tag: Tag): void;
  webCountFailure(web: Web): void;
  /** passed, refused, dryRun, delayed, gaveUp, untagged, failed. */
  webCounts(web: Web): ArrayLike<number>;
  /** Code and text of each warning since the last call. */
  webWarnings(web: Web): string[];
  webClose(web: Web): void;

  /** Throws the error about a cost that is not a number. */
  badCost(shown: string): never;

  /** `followsHost` says that the clock is set to the host's time before every call. */
  newClock(followsHost?: boolean): Clock;
  now(clock: Clock): number;
  advance(clock: Clock, ms: number): void;
  set(clock: Clock, ms: number): void;
}
