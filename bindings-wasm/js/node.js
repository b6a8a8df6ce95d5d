// dthrottle in WebAssembly for Node, as a CommonJS module. It is ready at once.
'use strict';

const { adapt } = require('./adapt.js');
const glue = require('./dthrottle.js');
const { makeFace } = require('./face/index.js');

const face = makeFace(adapt(glue), () => performance.now());

/** Does nothing: it is here so that the same program runs on the web. */
async function init() {}

/** @type {typeof import('./index.js')} */
module.exports = { ...face, init };
