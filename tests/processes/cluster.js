// A server of node:cluster. Each worker has its own throttle, and its responses contain its process ID.
// Prints the port when all workers listen. Exits when its standard input is closed.
'use strict';

const cluster = require('node:cluster');
const http = require('node:http');
const { Throttle } = require('../../bindings-node');

const { WORKERS = '4', THROTTLE = '{}' } = process.env;

function lead() {
  let listening = 0;
  cluster.on('listening', (_worker, address) => {
    listening += 1;
    if (listening === Number(WORKERS)) console.log(address.port);
  });
  for (let i = 0; i < Number(WORKERS); i += 1) cluster.fork();
  process.stdin.resume().on('end', () => process.exit());
}

function work() {
  const throttle = new Throttle({ rate: '1 per 100 years', ...JSON.parse(THROTTLE) });
  const server = http.createServer((_request, response) => {
    response.statusCode = throttle.allow('client') ? 200 : 429;
    response.end(String(process.pid));
  });
  server.listen(0, '127.0.0.1');
}

if (cluster.isPrimary) lead();
else work();
