// A plugin for Fastify 5.
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import type { Body, Counts, Options, RateLimitInfo, RefusalError, Refused, Source, SourceOptions, Tools, ValidateOptions } from './types.js';

/** A plugin that limits requests. */
declare function throttle(...given: Parameters<throttle.FastifyThrottle>): ReturnType<throttle.FastifyThrottle>;

declare namespace throttle {
  export { Body, Counts, Options, RateLimitInfo, RefusalError, Refused, Source, SourceOptions, Tools, ValidateOptions };

  /** The options of a route, in `config.throttle`. */
  export type RouteOptions = Options<[FastifyRequest, FastifyReply]>;

  export interface FastifyThrottleOptions extends RouteOptions {
    /** Whether all routes are limited, or only those with a `config.throttle`. Default: true. */
    global?: boolean | undefined;
  }

  export type FastifyThrottle = FastifyPluginCallback<FastifyThrottleOptions>;
  export const throttle: FastifyThrottle;
  export { throttle as default };
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The options of this route, a rate, `false` for no limit, or `true` for the options of the plugin. */
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
