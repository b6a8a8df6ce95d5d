// dthrottle for Node, as a CommonJS module.
'use strict';

const { makeApi } = require('./api/index.js');
const { loadForPlatform } = require('./native.js');

/** @type {typeof import('./index.js')} */
const dthrottle = makeApi(loadForPlatform());

module.exports = dthrottle;
