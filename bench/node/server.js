// An Express application in one process: bare, or with a limiter. Prints its port.
'use strict';

const express = require('express');

const [kind, redisPort] = process.argv.slice(2);
const app = express();

/** @type {Record<string, () => void>} */
const kinds = {
  bare() {},
  again() {},
  fields() {
    app.use((_request, response, next) => {
      response.setHeader('ratelimit-policy', '"default";q=10000000;w=100000');
      response.setHeader('ratelimit', '"default";r=9999999;t=1');
      next();
    });
  },
  ours() {
    const { throttle } = require('../../bindings-node/web/express.js');
    // As fast as one with a name, and nothing is left behind. What remains is another figure with
    // nearly every request, so that its headers are made anew.
    app.use(throttle({ rate: '100/s', burst: 10_000_000, table: false }));
  },
  erl() {
    const { rateLimit } = require('express-rate-limit');
    app.use(rateLimit({ windowMs: 3_600_000, limit: 1_000_000_000, standardHeaders: 'draft-8', legacyHeaders: false }));
  },
  rlf() {
    const Redis = require('ioredis');
    const { RateLimiterRedis } = require('rate-limiter-flexible');
    const storeClient = new Redis(Number(redisPort), '127.0.0.1');
    const limiter = new RateLimiterRedis({ storeClient, points: 1_000_000_000, duration: 3600 });
    app.use((request, response, next) => {
      limiter.consume(request.ip).then(() => next(), () => response.status(429).end());
    });
  },
};

kinds[kind]();
app.get('/', (_request, response) => response.send('hello'));
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
// The client keeps its connection while it asks others.
server.keepAliveTimeout = 600_000;
