// Middleware for Hono. The information is in `context.get('rateLimit')`.
import type { Context, Env, MiddlewareHandler, Next } from 'hono';
import type { Body, Counts, Options, RateLimitInfo, Refused, Source, SourceOptions, Tools, ValidateOptions } from './types.js';

/** Returns middleware that limits requests. `options` are for a source that is not an object. */
declare function throttle<E extends Env = any>(options: throttle.HonoOptions<E>): MiddlewareHandler<E> & Tools;
declare function throttle<E extends Env = any>(source: Source, options?: throttle.HonoOptions<E>): MiddlewareHandler<E> & Tools;
declare const exported: typeof throttle;

declare namespace throttle {
  export { Body, Counts, Options, RateLimitInfo, Refused, Source, SourceOptions, Tools, ValidateOptions };

  export type HonoOptions<E extends Env = any> = Options<[Context<E>], Next>;

  /** For the type of an application: `new Hono<ThrottleEnv>()`. */
  export interface ThrottleEnv {
    Variables: { rateLimit: RateLimitInfo };
  }

  export { exported as throttle, exported as default };
}

export = throttle;
