// A plugin for Fastify 5.
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import type { Body, Counts, Options, RateLimitInfo, RefusalError, Refused, Source, SourceOptions, Tools, ValidateOptions } from './types.js';

/** Asks a throttle about every request before the application sees it. */
declare function throttle(...given: Parameters<throttle.FastifyThrottle>): ReturnType<throttle.FastifyThrottle>;

// As plugins of Fastify are: what is required, imported by name, or by default, is the same function.
declare namespace throttle {
  export { Body, Counts, Options, RateLimitInfo, RefusalError, Refused, Source, SourceOptions, Tools, ValidateOptions };

  /** Options of a route, in `config.throttle`. */
  export type RouteOptions = Options<[FastifyRequest, FastifyReply]>;

  export interface FastifyThrottleOptions extends RouteOptions {
    /** Whether all routes are throttled, or only those with a `config.throttle`; true by default. */
    global?: boolean | undefined;
  }

  export type FastifyThrottle = FastifyPluginCallback<FastifyThrottleOptions>;
  export const throttle: FastifyThrottle;
  export { throttle as default };
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Options of this route, a rate, false: not throttled, true: as all others. */
    throttle?: throttle.RouteOptions | string | number | boolean | undefined;
  }
  interface FastifyRequest {
    rateLimit: RateLimitInfo | null;
  }
  interface FastifyInstance {
    throttle: Tools;
  }
}

export = throttle;
