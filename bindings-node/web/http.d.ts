// Limits the requests to a handler of Node's own servers.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Body, Counts, Options, RateLimitInfo, Refused, Source, SourceOptions, Tools, ValidateOptions } from './types.js';

/** Returns a handler that passes the allowed requests on to `handler`. */
declare function throttle<Request = IncomingMessage, Response = ServerResponse>(
  handler: (request: Request, response: Response) => unknown,
  options: throttle.HttpOptions<Request, Response>,
): throttle.ThrottledHandler<Request, Response>;
declare function throttle<Request = IncomingMessage, Response = ServerResponse>(
  handler: (request: Request, response: Response) => unknown,
  source: Source,
  options?: throttle.HttpOptions<Request, Response>,
): throttle.ThrottledHandler<Request, Response>;
declare const exported: typeof throttle;

declare namespace throttle {
  export { Body, Counts, Options, RateLimitInfo, Refused, Source, SourceOptions, Tools, ValidateOptions };

  export type HttpOptions<Request, Response> = Options<[Request, Response]>;

  export interface ThrottledHandler<Request, Response> extends Tools {
    /** Returns what the handler returns, or a promise of it if the request is delayed. */
    (request: Request, response: Response): unknown;
  }

  export { exported as throttle, exported as default };
}

export = throttle;
