// Middleware for Hono. The information is in `context.get('rateLimit')`.
import type { Context, Env, MiddlewareHandler, Next } from 'hono';
import type { Options, RateLimitInfo, Source, Tools } from './types.js';

export type * from './types.js';

export type HonoOptions<E extends Env = any> = Options<[Context<E>], Next>;

/** For the type of an application: `new Hono<ThrottleEnv>()`. */
export interface ThrottleEnv {
  Variables: { rateLimit: RateLimitInfo };
}

/** Asks a throttle about every request before the application sees it. */
export function throttle<E extends Env = any>(options: HonoOptions<E>): MiddlewareHandler<E> & Tools;
export function throttle<E extends Env = any>(source: Source, options?: HonoOptions<E>): MiddlewareHandler<E> & Tools;
