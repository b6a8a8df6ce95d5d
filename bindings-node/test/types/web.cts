// Middleware in a CommonJS module.
import express = require('express');

import { throttle } from 'dthrottle/express';
import plugin = require('dthrottle/fastify');
import { throttle as koaThrottle } from 'dthrottle/koa';
import httpThrottle = require('dthrottle/http');
import { fastify } from 'fastify';
import Koa = require('koa');

const app = express();
app.use(throttle({ rate: '100/s', trustedProxies: ['10.0.0.0/8'], skipFailedRequests: true }));

fastify().register(plugin, { rate: '100/s', global: false });

new Koa().use(koaThrottle('100/s', { tag: (context) => context.ip }));

httpThrottle((_request, response) => response.end(), '100/s');

export = app;
