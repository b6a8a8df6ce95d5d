// An Express application that uses the throttle of a configuration file.
'use strict';

const express = require('express');
const { Throttle } = require('../../bindings-node');

const web = Throttle.fromFile(process.env.CONFIG).domain('web');
const app = express();
app.use((request, response) => {
  const query = request.originalUrl.split('?')[1] ?? '';
  const allowed = request.path === '/free' || web.allow(query);
  response.set('X-Process', String(process.pid)).status(allowed ? 200 : 429).send('hello\n');
});
const server = app.listen(Number(process.env.PORT), '127.0.0.1');
process.on('SIGTERM', () => server.close(() => process.exit(0)));
