// A handler of Node's own servers, throttled.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Options, Source, Tools } from './types.js';

export type * from './types.js';

export type HttpOptions<Request, Response> = Options<[Request, Response]>;

export interface ThrottledHandler<Request, Response> extends Tools {
  /** Gives what the handler gives, or a promise of it for a request that is held. */
  (request: Request, response: Response): unknown;
}

/** Asks a throttle about every request before the handler sees it. */
export function throttle<Request = IncomingMessage, Response = ServerResponse>(
  handler: (request: Request, response: Response) => unknown,
  options: HttpOptions<Request, Response>,
): ThrottledHandler<Request, Response>;
export function throttle<Request = IncomingMessage, Response = ServerResponse>(
  handler: (request: Request, response: Response) => unknown,
  source: Source,
  options?: HttpOptions<Request, Response>,
): ThrottledHandler<Request, Response>;
