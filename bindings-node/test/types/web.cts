// The same as a CommonJS module.
import express = require('express');

import { throttle } from 'dthrottle/express';

const app = express();
app.use(throttle({ rate: '100/s', trustedProxies: ['10.0.0.0/8'], skipFailedRequests: true }));

export = app;
