// Middleware for Express 4 and 5, and Connect.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Options, Source, Tools } from './types.js';

export type * from './types.js';

/** Functions get the framework's own request and response. */
export type ExpressOptions<Request extends IncomingMessage, Response extends ServerResponse> = Options<[Request, Response]>;

export interface ExpressMiddleware<Request, Response> extends Tools {
  (request: Request, response: Response, next: (error?: any) => void): void;
}

/** Asks a throttle about every request before the application sees it. */
export function throttle<Request extends IncomingMessage = IncomingMessage, Response extends ServerResponse = ServerResponse>(
  options: ExpressOptions<Request, Response>,
): ExpressMiddleware<Request, Response>;
export function throttle<Request extends IncomingMessage = IncomingMessage, Response extends ServerResponse = ServerResponse>(
  source: Source,
  options?: ExpressOptions<Request, Response>,
): ExpressMiddleware<Request, Response>;
