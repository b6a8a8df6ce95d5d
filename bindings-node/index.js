// dthrottle for Node, as a CommonJS module.
'use strict';

const { makeFace } = require('./face/index.js');
const { loadForPlatform } = require('./native.js');

/** @type {typeof import('./index.js')} */
const dthrottle = makeFace(loadForPlatform());

module.exports = dthrottle;
