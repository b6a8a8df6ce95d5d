// Middleware for Koa. The information is in `context.state.rateLimit`.
import type { IncomingMessage, ServerResponse } from 'node:http';
// @ts-ignore Koa is used without its types, too.
import type { Context as KoasContext } from 'koa';
import type { Options, Source, Tools } from './types.js';

export type * from './types.js';

/** What is needed of Koa's context. */
export interface KoaContext {
  req: IncomingMessage;
  res: ServerResponse;
  state: any;
}

/** What functions get that say nothing of it: Koa's own where its types are there. */
type AnyContext = [KoasContext] extends [0] ? KoaContext : KoasContext;

export type KoaOptions<Context> = Options<[Context], () => Promise<any>>;

export interface KoaMiddleware<Context> extends Tools {
  (context: Context, next: () => Promise<any>): Promise<any>;
}

/** Asks a throttle about every request before the application sees it. */
export function throttle<Context extends KoaContext = AnyContext>(options: KoaOptions<Context>): KoaMiddleware<Context>;
export function throttle<Context extends KoaContext = AnyContext>(source: Source, options?: KoaOptions<Context>): KoaMiddleware<Context>;
