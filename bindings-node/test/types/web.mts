// Middleware as users of TypeScript write it. The test compiles it with `strict`.
import http from 'node:http';

import { Hono } from 'hono';
import express, { type Request } from 'express';
import { fastify } from 'fastify';
import Koa from 'koa';

import dthrottle, { Throttle } from 'dthrottle';
import { clientAddress, parseAddress } from 'dthrottle/address';
import expressThrottle, { throttle, type ExpressOptions } from 'dthrottle/express';
import fastifyPlugin, { throttle as fastifyThrottle, type FastifyThrottleOptions, type RateLimitInfo } from 'dthrottle/fastify';
import honoDefault, { throttle as honoThrottle, type ThrottleEnv } from 'dthrottle/hono';
import httpDefault, { throttle as httpThrottle } from 'dthrottle/http';
import koaDefault, { throttle as koaThrottle, type KoaOptions, type Tools } from 'dthrottle/koa';

declare global {
  namespace Express {
    interface Request {
      user?: string;
      limits?: RateLimitInfo;
    }
  }
}

const app = express();
app.use(throttle('100/s'));
app.use(throttle({ rate: '100/s', burst: 200, maxDelayMs: 500, maxDelayed: 10, table: { size: 5_000_000 } }));
app.use(throttle(new Throttle('5/s'), { tag: 'header:X-Api-Key', body: 'problem+json' }));
app.use('/api', throttle({
  windowMs: 60_000,
  limit: 100,
  keyGenerator: (request: Request) => request.user ?? clientAddress(request.ip),
  skip: (request: Request) => request.path === '/health',
  handler: (_request, response, _next, refused) => response.writeHead(refused.status).end(String(refused.decision.retryAfterMs)),
  headers: 'draft-7',
  validate: { window: false },
}));
const options: ExpressOptions<Request, express.Response> = {
  rules: [{ name: 'quick', rate: '5/s' }],
  cost: async (request) => Number(request.query['cost'] ?? 1),
  onRefused: (request, response, decision) => console.log(request.ip, response.statusCode, decision.rule),
};
const middleware = throttle(options);
app.get('/', middleware, (request, response) => {
  response.json({ left: request.rateLimit?.remaining, at: request.rateLimit?.resetTime.getTime() });
  const { tag } = request.rateLimit ?? {};
  if (tag !== undefined) middleware.resetKey(tag);
});
// Functions without types for their arguments.
app.get('/users/:id', throttle('5/s', { skip: (request) => request.path === '/health' }), (request, response) => {
  response.end(request.params.id);
});
app.use('/b', throttle({ rate: '5/s', tag: ({ ip }) => ip, handler: (_request, response) => response.status(429).json({}) }));
express.Router().post('/login', throttle('5/minute', { tag: (request) => request.body.user }));
// @ts-expect-error nothing that a request has
throttle('5/s', { skip: (request) => request.paht === '/health' });
const passed: number = middleware.counts.passed;
middleware.close();
middleware.resetKey(parseAddress('203.0.113.7') ?? 'nobody');
// @ts-expect-error an option that there is not
throttle({ rate: '1/s', statsCode: 429 });
// @ts-expect-error a kind of fields that there is not
throttle('1/s', { headers: 'draft-5' });

type Next = (error?: any) => void;
declare const connect: { use(middleware: (request: http.IncomingMessage, response: http.ServerResponse, next: Next) => void): void };
connect.use(throttle('5/s', { skip: (request) => request.url === '/health' }));

http.createServer(httpThrottle((_request, response) => response.end(), '100/s', { tag: (request) => request.headers.host }));

// package.json has an older version of content-disposition for the types of Koa, which do not fit that of Express.
const koa = new Koa();
koa.use(koaThrottle('100/s'));
koa.use(koaThrottle({ rate: '100/s', tag: (context: Koa.Context) => context.ip }));
// Functions without types for their arguments.
koa.use(koaThrottle('100/s', { keyGenerator: ({ ip }) => ip, cost: async (context) => Number(context.query['cost'] ?? 1) }));
const limits: KoaOptions<Koa.Context> = {
  windowMs: 60_000,
  limit: 100,
  skip: (context) => context.path === '/health',
  handler: async (context, next, refused) => {
    context.status = refused.status;
    context.body = { after: refused.decision.retryAfterMs };
    await next();
  },
  onRefused: (context, decision) => console.log(context.ip, decision.rule),
};
const limited: Koa.Middleware & Tools = koaThrottle(limits);
koa.use(limited).use(async (context) => limited.resetKey(context.ip));
// @ts-expect-error something else than a context has there
koaThrottle('5/s', { skip: (context) => context.path === 5 });
// @ts-expect-error an option that there is not
koa.use(koaThrottle({ rate: '1/s', statsCode: 429 }));

interface State {
  user: string;
  rateLimit?: RateLimitInfo;
}
interface Custom {
  users: Map<string, string>;
}
type Context = Koa.ParameterizedContext<State, Custom>;
const typed = new Koa<State, Custom>();
typed.use(koaThrottle('100/s'));
typed.use(koaThrottle('100/s', { tag: (context) => context.ip }));
typed.use(koaThrottle('100/s', { tag: (context: Context) => context.users.get(context.state.user) }));
// @ts-expect-error nothing that its state has
typed.use(koaThrottle('100/s', { tag: (context: Context) => context.state.usr }));
typed.use(async (context) => {
  context.body = context.state.rateLimit?.remaining;
});

const hono = new Hono<ThrottleEnv>();
hono.use(honoThrottle('100/s', { tag: (context) => context.req.header('X-Api-Key') }));
hono.get('/', (context) => context.text(String(context.get('rateLimit').remaining)));

const server = fastify();
await server.register(fastifyThrottle, { rate: '100/s', global: true, tag: (request) => request.ip });
await server.register(fastifyPlugin, { rate: '100/s' } satisfies FastifyThrottleOptions);
await server.register(import('dthrottle/fastify'), { rate: '100/s' });
// @ts-expect-error an option that there is not
await server.register(fastifyPlugin, { rate: '100/s', glboal: true });
const told = (info: RateLimitInfo | null): number | undefined => info?.remaining;
server.get('/told', async (request) => told(request.rateLimit));
server.get('/login', { config: { throttle: { rate: '5/minute' } } }, async (request) => request.rateLimit?.remaining);
server.get('/health', { config: { throttle: false } }, async () => 'fine');
server.throttle.resetKey('t');

// The default exports.
app.use(expressThrottle({ throttle: new dthrottle.Throttle('100/s'), skip: (request) => request.path === '/health' }));
koa.use(koaDefault('100/s', { tag: ({ ip }) => ip }));
hono.use(honoDefault('100/s'));
http.createServer(httpDefault((_request, response) => response.end(), '100/s'));

export { passed };
