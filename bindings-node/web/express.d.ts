// Middleware for Express 4 and 5, and Connect.
import type { IncomingMessage, ServerResponse } from 'node:http';
// @ts-ignore Users of Connect may not have the types of Express.
import type { Request as ExpressRequest, Response as ExpressResponse } from 'express';
import type { Body, Counts, Options, RateLimitInfo, Refused, Source, SourceOptions, Tools, ValidateOptions } from './types.js';

/** `Theirs` if the types of Express are installed, otherwise `Else`. */
type IfInstalled<Theirs, Else> = [Theirs] extends [0] ? Else : Theirs;
type DefaultRequest = IfInstalled<ExpressRequest, IncomingMessage>;
type DefaultResponse = IfInstalled<ExpressResponse, ServerResponse>;

/** Returns middleware that limits requests. `options` are for a source that is not an object. */
declare function throttle<Request extends IncomingMessage = DefaultRequest, Response extends ServerResponse = DefaultResponse>(
  options: throttle.ExpressOptions<Request, Response>,
): throttle.ExpressMiddleware<Request, Response>;
declare function throttle<Request extends IncomingMessage = DefaultRequest, Response extends ServerResponse = DefaultResponse>(
  source: Source,
  options?: throttle.ExpressOptions<Request, Response>,
): throttle.ExpressMiddleware<Request, Response>;
declare const exported: typeof throttle;

declare namespace throttle {
  export { Body, Counts, Options, RateLimitInfo, Refused, Source, SourceOptions, Tools, ValidateOptions };

  /** The application's functions get the framework's own request and response. */
  export type ExpressOptions<Request extends IncomingMessage, Response extends ServerResponse> = Options<[Request, Response]>;

  export interface ExpressMiddleware<Request, Response> extends Tools {
    (request: Request, response: Response, next: (error?: any) => void): void;
  }

  export { exported as throttle, exported as default };
}

declare global {
  namespace Express {
    interface Request {
      /** Undefined if the request was not limited. */
      rateLimit?: RateLimitInfo;
    }
  }
}

export = throttle;
