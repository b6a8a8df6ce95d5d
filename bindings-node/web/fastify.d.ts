// A plugin for Fastify 5.
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import type { Options, RateLimitInfo, Tools } from './types.js';

export type * from './types.js';

/** Options of a route, in `config.throttle`. */
export type RouteOptions = Options<[FastifyRequest, FastifyReply]>;

export interface FastifyThrottleOptions extends RouteOptions {
  /** Whether all routes are throttled, or only those with a `config.throttle`; true by default. */
  global?: boolean | undefined;
}

/** Asks a throttle about every request before the application sees it. */
export const throttle: FastifyPluginCallback<FastifyThrottleOptions>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Options of this route, a rate, false: not throttled, true: as all others. */
    throttle?: RouteOptions | string | number | boolean | undefined;
  }
  interface FastifyRequest {
    rateLimit: RateLimitInfo | null;
  }
  interface FastifyInstance {
    throttle: Tools;
  }
}
