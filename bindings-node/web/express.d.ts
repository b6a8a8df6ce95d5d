// Middleware for Express 4 and 5, and Connect.
import type { IncomingMessage, ServerResponse } from 'node:http';
// @ts-ignore Connect is used without the types of Express.
import type { Request as ExpressRequest, Response as ExpressResponse } from 'express';
import type { Options, RateLimitInfo, Source, Tools } from './types.js';

export type * from './types.js';

declare global {
  namespace Express {
    interface Request {
      /** Nothing at a request that was not asked about. */
      rateLimit?: RateLimitInfo;
    }
  }
}

/** What functions get that say nothing of it: Express's own where its types are there, else Node's. */
type Known<Theirs, Else> = [Theirs] extends [0] ? Else : Theirs;
type AnyRequest = Known<ExpressRequest, IncomingMessage>;
type AnyResponse = Known<ExpressResponse, ServerResponse>;

/** Functions get the framework's own request and response. */
export type ExpressOptions<Request extends IncomingMessage, Response extends ServerResponse> = Options<[Request, Response]>;

export interface ExpressMiddleware<Request, Response> extends Tools {
  (request: Request, response: Response, next: (error?: any) => void): void;
}

/** Asks a throttle about every request before the application sees it. */
export function throttle<Request extends IncomingMessage = AnyRequest, Response extends ServerResponse = AnyResponse>(
  options: ExpressOptions<Request, Response>,
): ExpressMiddleware<Request, Response>;
export function throttle<Request extends IncomingMessage = AnyRequest, Response extends ServerResponse = AnyResponse>(
  source: Source,
  options?: ExpressOptions<Request, Response>,
): ExpressMiddleware<Request, Response>;
