// Middleware for Koa. The information is in `context.state.rateLimit`.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Options, Source, Tools } from './types.js';

export type * from './types.js';

/** What is needed of Koa's context. */
export interface KoaContext {
  req: IncomingMessage;
  res: ServerResponse;
  state: any;
}

export type KoaOptions<Context> = Options<[Context], () => Promise<any>>;

export interface KoaMiddleware<Context> extends Tools {
  (context: Context, next: () => Promise<any>): Promise<any>;
}

/** Asks a throttle about every request before the application sees it. */
export function throttle<Context extends KoaContext = KoaContext>(options: KoaOptions<Context>): KoaMiddleware<Context>;
export function throttle<Context extends KoaContext = KoaContext>(source: Source, options?: KoaOptions<Context>): KoaMiddleware<Context>;
