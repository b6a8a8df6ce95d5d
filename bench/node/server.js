// Express applications in one process, bare or with a limiter, each on its own port:
// `node server.js <port of Redis> <kind> ...`. Prints the ports, in the order of the kinds.
'use strict';

const { once } = require('node:events');

const express = require('express');

/** @typedef {import('express').Express} Express */

const [redisPort, ...wanted] = process.argv.slice(2);

/** @type {Record<string, (app: Express) => void>} */
const kinds = {
  bare() {},
  bare_2() {},
  fields(app) {
    app.use((_request, response, next) => {
      response.setHeader('ratelimit-policy', '"default";q=10000000;w=100000');
      response.setHeader('ratelimit', '"default";r=9999999;t=1');
      next();
    });
  },
  ours(app) {
    const { throttle } = require('../../bindings-node/web/express.js');
    // A private table is as fast as a named one, and nothing has to be removed. The burst is so large
    // that the remaining units differ in almost every response, so header values cannot be reused.
    app.use(throttle({ rate: '100/s', burst: 10_000_000, table: false }));
  },
  erl(app) {
    const { rateLimit } = require('express-rate-limit');
    app.use(rateLimit({ windowMs: 3_600_000, limit: 1_000_000_000, standardHeaders: 'draft-8', legacyHeaders: false }));
  },
  rlf(app) {
    const Redis = require('ioredis');
    const { RateLimiterRedis } = require('rate-limiter-flexible');
    const storeClient = new Redis(Number(redisPort), '127.0.0.1');
    const limiter = new RateLimiterRedis({ storeClient, points: 1_000_000_000, duration: 3600 });
    app.use((request, response, next) => {
      limiter.consume(request.ip).then(() => next(), () => response.status(429).end());
    });
  },
};

/**
 * Starts an application and returns its port.
 * @param {string} kind
 */
async function start(kind) {
  const app = express();
  kinds[kind](app);
  app.get('/', (_request, response) => response.send('hello'));
  const server = app.listen(0, '127.0.0.1');
  // The client keeps its connection while it uses the others.
  server.keepAliveTimeout = 600_000;
  await once(server, 'listening');
  return server.address().port;
}

Promise.all(wanted.map(start)).then((ports) => console.log(JSON.stringify(ports)));
