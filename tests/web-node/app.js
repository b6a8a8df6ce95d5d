// Applications with middleware, in every framework, with any number of workers. Prints the port when all workers
// listen, and exits when its standard input is closed. Responses contain the process ID. OPTIONS are those of the
// middleware. PORT is set if another program starts the workers; for several instances of PM2 it is a list, separated
// by blanks.
'use strict';

const cluster = require('node:cluster');
const http = require('node:http');
const { once } = require('node:events');

const { FRAMEWORK = 'express', NODE_APP_INSTANCE = '0', OPTIONS = '{}', PORT = '0', WORKERS = '4' } = process.env;
const ports = PORT.split(' ').map(Number);
const options = JSON.parse(OPTIONS);

/** @type {Record<string, (options: object) => Promise<import('node:http').Server> | import('node:http').Server>} */
const frameworks = {
  express: (given) => inExpress('express', given),
  express4: (given) => inExpress('express4', given),
  http(given) {
    const { throttle } = require('dthrottle/http');
    const handler = (_request, response) => response.setHeader('X-Process', process.pid).end('hello');
    return http.createServer(throttle(handler, given)).listen(0, '127.0.0.1');
  },
  koa(given) {
    const Koa = require('koa');
    const { throttle } = require('dthrottle/koa');
    const app = new Koa();
    app.use(throttle(given));
    app.use((context) => {
      context.set('X-Process', String(process.pid));
      context.body = 'hello';
    });
    return app.listen(0, '127.0.0.1');
  },
  async fastify(given) {
    const app = require('fastify')();
    await app.register(require('dthrottle/fastify').throttle, given);
    app.get('/*', async (_request, reply) => {
      reply.header('X-Process', process.pid);
      return 'hello';
    });
    await app.listen({ port: 0, host: '127.0.0.1' });
    return app.server;
  },
  hono(given) {
    const { Hono } = require('hono');
    const { serve } = require('@hono/node-server');
    const { throttle } = require('dthrottle/hono');
    const app = new Hono();
    app.use(throttle(given));
    app.get('*', (context) => context.text('hello', 200, { 'X-Process': String(process.pid) }));
    return serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  },
};

/**
 * @param {string} name
 * @param {object} given
 */
function inExpress(name, given) {
  const { throttle } = require('dthrottle/express');
  const app = require(name)();
  app.use(throttle(given));
  app.use((_request, response) => response.set('X-Process', String(process.pid)).send('hello'));
  return app.listen(ports[Number(NODE_APP_INSTANCE)] ?? ports[0], '127.0.0.1');
}

function lead() {
  let listening = 0;
  cluster.on('listening', (_worker, address) => {
    listening += 1;
    if (listening === Number(WORKERS)) console.log(address.port);
  });
  for (let i = 0; i < Number(WORKERS); i += 1) cluster.fork();
  cluster.on('exit', (_worker, code) => {
    if (code !== 0) process.exit(code || 1);
  });
  process.stdin.resume().on('end', () => process.exit());
}

async function main() {
  const server = await frameworks[FRAMEWORK](options);
  if (!server.listening) await once(server, 'listening');
}

if (cluster.isPrimary && PORT === '0') lead();
else main();
