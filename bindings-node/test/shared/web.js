// Real servers of every framework in this process, for the tests of middleware, and a client for them.
'use strict';

const http = require('node:http');
const { once } = require('node:events');

const { forget } = require('../../web/validate.js');

/** @typedef {any} Any */

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {Record<string, string>} headers
 * @property {string} body
 */

/**
 * @typedef {object} Web A server that is throttled.
 * @property {(path?: string, options?: http.RequestOptions & { body?: string }) => Promise<Answer>} get
 * @property {(count: number, options?: http.RequestOptions) => Promise<number[]>} statuses
 * @property {Any} counts
 * @property {Any} tools The properties of its middleware.
 * @property {Any[]} seen The rateLimit of each request that reached the application.
 * @property {() => number} left The number of its clients that left after a request to `?wait`.
 * @property {number} port
 * @property {http.Server} server
 * @property {() => void} close
 */

/**
 * @typedef {(options: Any[], seen: Any[]) => Promise<{ server: http.Server, tools: Any }>} Start
 */

/** @param {string} name */
const need = (name) => require(name);

/**
 * The status of an application's response, from the query.
 * @param {string | undefined} url
 */
const statusOf = (url = '') => Number(/status=(\d+)/.exec(url)?.[1] ?? 200);

/** The number of clients that left after a request to `?wait`. */
let left = 0;

/**
 * For a request to `?wait`, waits until its client has left.
 * @param {Any} request
 * @returns {Promise<void> | undefined}
 */
function leaves({ url, socket }) {
  if (!url.includes('wait')) return undefined;
  // Runs after the listeners of the middleware.
  return once(socket, 'close').then(() => new Promise((resolve) => setImmediate(setImmediate, resolve))).then(() => {
    left += 1;
  });
}

/**
 * @param {string} name
 * @returns {Start}
 */
const express = (name) => async (given, seen) => {
  const { throttle } = require('../../web/express.js');
  const app = need(name)();
  const middleware = throttle(.../** @type {[Any, Any]} */ (given));
  app.use(middleware);
  app.use((/** @type {Any} */ request, /** @type {Any} */ response) => {
    seen.push(request.rateLimit);
    response.statusCode = statusOf(request.originalUrl);
    response.setHeader('X-App', '1');
    if (!leaves(request)) response.end('hello');
  });
  return { server: http.createServer(app).listen(0, '127.0.0.1'), tools: middleware };
};

/** @type {Record<string, Start>} */
const kinds = {
  'Express 5': express('express'),
  'Express 4': express('express4'),
  Connect: express('connect'),
  async http(given, seen) {
    const { throttle } = require('../../web/http.js');
    const handler = throttle(
      (/** @type {Any} */ request, /** @type {Any} */ response) => {
        seen.push(request.rateLimit);
        response.statusCode = statusOf(request.url);
        response.setHeader('X-App', '1');
        if (!leaves(request)) response.end('hello');
      },
      .../** @type {[Any, Any]} */ (given),
    );
    return { server: http.createServer(handler).listen(0, '127.0.0.1'), tools: handler };
  },
  async Koa(given, seen) {
    const { throttle } = require('../../web/koa.js');
    const app = new (need('koa'))();
    const middleware = throttle(.../** @type {[Any, Any]} */ (given));
    app.use(middleware);
    app.use(async (/** @type {Any} */ context) => {
      seen.push(context.state.rateLimit);
      context.status = statusOf(context.url);
      context.set('X-App', '1');
      await leaves(context.req);
      context.body = 'hello';
    });
    return { server: app.listen(0, '127.0.0.1'), tools: middleware };
  },
  async Fastify(given, seen) {
    const { throttle } = require('../../web/fastify.js');
    const { mergeOptions } = require('../../web/options.js');
    const app = need('fastify')({ exposeHeadRoutes: true });
    await app.register(throttle, mergeOptions(.../** @type {[Any, Any]} */ (given)));
    app.all('/*', async (/** @type {Any} */ request, /** @type {Any} */ reply) => {
      seen.push(request.rateLimit);
      reply.code(statusOf(request.url)).header('X-App', '1');
      await leaves(request.raw);
      return 'hello';
    });
    await app.listen({ port: 0, host: '127.0.0.1' });
    return { server: app.server, tools: app.throttle };
  },
  async Hono(given, seen) {
    const { throttle } = require('../../web/hono.js');
    const { Hono } = need('hono');
    const { serve } = need('@hono/node-server');
    const app = new Hono();
    const middleware = throttle(.../** @type {[Any, Any]} */ (given));
    app.use(middleware);
    app.all('*', async (/** @type {Any} */ context) => {
      seen.push(context.get('rateLimit'));
      await leaves(context.env.incoming);
      return new Response('hello', { status: statusOf(context.req.url), headers: { 'X-App': '1' } });
    });
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
    return { server: /** @type {http.Server} */ (server), tools: middleware };
  },
};

/**
 * The type and the body of a refusal without the option `body`. Fastify uses its own format for errors.
 * @param {string} kind
 * @param {number} [statusCode]
 */
function defaultRefusal(kind, statusCode = 429) {
  if (kind !== 'Fastify') return { type: 'text/plain; charset=utf-8', body: 'Too Many Requests\n' };
  const error = http.STATUS_CODES[statusCode];
  const body = JSON.stringify({ statusCode, code: 'DTHROTTLE_REFUSED', error, message: 'rate limit exceeded' });
  return { type: 'application/json; charset=utf-8', body };
}

/**
 * Makes one request on a new connection.
 * @param {number} port
 * @param {string} path
 * @param {http.RequestOptions & { body?: string }} options
 * @returns {Promise<Answer>}
 */
function ask(port, path = '/', { body, ...options } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, path, agent: false, ...options }, async (response) => {
      try {
        let text = '';
        for await (const part of response.setEncoding('utf8')) text += part;
        const headers = /** @type {Record<string, string>} */ (response.headers);
        resolve({ status: Number(response.statusCode), headers, body: text });
      } catch (error) {
        reject(error);
      }
    });
    request.on('error', reject).end(body);
  });
}

/**
 * Starts a server of a framework.
 * @param {string} kind
 * @param {Any[]} given The arguments of its middleware.
 * @returns {Promise<Web>}
 */
async function start(kind, ...given) {
  /** @type {Any[]} */
  const seen = [];
  const before = left;
  const { server, tools } = await kinds[kind](given, seen);
  if (!server.listening) await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    port,
    server,
    get counts() {
      return tools.counts;
    },
    tools,
    seen,
    left: () => left - before,
    get: (path, options) => ask(port, path, options),
    async statuses(count, options) {
      const all = [];
      for (let i = 0; i < count; i += 1) all.push((await ask(port, '/', options)).status);
      return all;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/**
 * Runs a test with a server of an application.
 * @param {Any} app
 * @param {(get: (path?: string, options?: http.RequestOptions) => Promise<Answer>) => Promise<void>} run
 */
async function using(app, run) {
  const server = http.createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  try {
    await run((path, options) => ask(port, path, options));
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/**
 * Collects the warnings of dthrottle during a call.
 * @param {() => unknown} run
 * @returns {Promise<Any[]>}
 */
async function warnings(run) {
  /** @type {Any[]} */
  const emitted = [];
  forget();
  const onWarning = (/** @type {Any} */ warning) => {
    if (warning.name === 'DthrottleWarning') emitted.push(warning);
  };
  process.on('warning', onWarning);
  try {
    await run();
    // Warnings are emitted in a later tick.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('warning', onWarning);
  }
  return emitted;
}

module.exports = { ask, kinds: Object.keys(kinds), start, using, defaultRefusal, warnings };
