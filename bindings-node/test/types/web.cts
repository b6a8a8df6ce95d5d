// The same as a CommonJS module.
import express = require('express');

import { throttle } from 'dthrottle/express';
import plugin = require('dthrottle/fastify');
import { fastify } from 'fastify';

const app = express();
app.use(throttle({ rate: '100/s', trustedProxies: ['10.0.0.0/8'], skipFailedRequests: true }));

fastify().register(plugin, { rate: '100/s', global: false });

export = app;
