// Middleware for Koa. The information is in `context.state.rateLimit`.
import type { IncomingMessage, ServerResponse } from 'node:http';
// @ts-ignore Users may not have the types of Koa.
import type { Context as KoasContext } from 'koa';
import type { Body, Counts, Options, RateLimitInfo, Refused, Source, SourceOptions, Tools, ValidateOptions } from './types.js';

/** Koa's own context if its types are installed. */
type DefaultContext = [KoasContext] extends [0] ? throttle.KoaContext : KoasContext;

/** Returns middleware that limits requests. `options` are for a source that is not an object. */
declare function throttle<Context extends throttle.KoaContext = DefaultContext>(
  options: throttle.KoaOptions<Context>,
): throttle.KoaMiddleware<Context>;
declare function throttle<Context extends throttle.KoaContext = DefaultContext>(
  source: Source,
  options?: throttle.KoaOptions<Context>,
): throttle.KoaMiddleware<Context>;
declare const exported: typeof throttle;

declare namespace throttle {
  export { Body, Counts, Options, RateLimitInfo, Refused, Source, SourceOptions, Tools, ValidateOptions };

  /** The part of Koa's context that the middleware uses. */
  export interface KoaContext {
    req: IncomingMessage;
    res: ServerResponse;
    state: any;
  }

  export type KoaOptions<Context> = Options<[Context], () => Promise<any>>;

  export interface KoaMiddleware<Context> extends Tools {
    (context: Context, next: () => Promise<any>): Promise<any>;
  }

  export { exported as throttle, exported as default };
}

export = throttle;
