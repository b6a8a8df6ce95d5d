// Adapters that slow HTTP clients down when a service answers 429 or 503: fetch, undici and axios. See docs/busy.md.

import { BusyThrottle } from '../index.js';

export { BusyThrottle };

/** The options of every adapter. */
export interface CallOptions {
  /** The busy throttle to use. Default: the adapter makes its own. */
  throttle?: BusyThrottle | undefined;
  /** The longest time a request may wait before it is refused, in milliseconds. Default: 0. */
  maxDelayMs?: number | undefined;
  /** The status codes of busy responses. Default: `[429, 503]`. */
  statuses?: readonly number[] | undefined;
  /** Returns the name of the service for a URL. Default: `serviceOf`, the host and port. */
  service?: ((url: string) => string) | undefined;
}

/** The error of a request that was not sent, because its service is busy. */
export class ServiceBusyError extends Error {
  constructor(service: string, waitMs: number);
  readonly code: 'SERVICE_BUSY';
  readonly service: string;
  /** The time until the request could be sent, in milliseconds. */
  readonly waitMs: number;
}

/** Returns a fetch function that waits for a turn of a busy throttle. It calls `options.fetch`, or the global fetch. */
export function busyFetch(options?: CallOptions & { fetch?: typeof fetch | undefined }): typeof fetch;

/** Returns an interceptor for the method `compose` of an undici dispatcher. */
export function busyInterceptor(
  options?: CallOptions,
): (dispatch: (options: any, handler: any) => boolean) => (options: any, handler: any) => boolean;

/** Makes the requests of an axios instance wait for a turn of a busy throttle. Returns the instance. */
export function busyAxios<T extends { getUri: Function; interceptors: any }>(
  instance: T,
  options?: CallOptions,
): T;

/** The service of a URL: its host, and its port unless it is the default port of the scheme. */
export function serviceOf(url: string): string;

/** The value of Retry-After in milliseconds from `nowMs` (default: `Date.now()`). Undefined if it is invalid or past. */
export function retryAfterMs(value: string | null | undefined, nowMs?: number): number | undefined;
