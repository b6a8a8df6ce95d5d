// Adapters for those who make calls: fetch, undici, axios. docs/busy.md tells the whole story.

import { BusyThrottle } from '../index.js';

export { BusyThrottle };

/** What every adapter takes. */
export interface CallOptions {
  /** The throttle that is asked; by default one of its own. */
  throttle?: BusyThrottle | undefined;
  /** How long a request may wait for its turn before it is refused; by default not at all. */
  maxWaitMs?: number | undefined;
  /** Which answers say busy: by default 429 and 503. */
  statuses?: readonly number[] | undefined;
  /** The service's name from a URL: by default host and port. */
  service?: ((url: string) => string) | undefined;
}

/** A request was not sent, because the service is busy and its turn is not yet. */
export class ServiceBusyError extends Error {
  constructor(service: string, waitMs: number);
  readonly code: 'SERVICE_BUSY';
  readonly service: string;
  /** When it is worth trying again. */
  readonly waitMs: number;
}

/** A fetch that asks a busy throttle first, around `fetch` or the global one. */
export function busyFetch(options?: CallOptions & { fetch?: typeof fetch | undefined }): typeof fetch;

/** An interceptor for the `compose` of an undici dispatcher. */
export function busyInterceptor(
  options?: CallOptions,
): (dispatch: (options: any, handler: any) => boolean) => (options: any, handler: any) => boolean;

/** Lets an axios instance ask a busy throttle first; gives the instance back. */
export function busyAxios<T extends { getUri: Function; interceptors: any }>(
  instance: T,
  options?: CallOptions,
): T;

/** The service of a URL: its host, and its port unless that is the scheme's own. */
export function serviceOf(url: string): string;

/** A Retry-After header in milliseconds, by `Date.now()`; nothing if it cannot be read. */
export function retryAfterMs(value: string | null | undefined, nowMs?: number): number | undefined;
