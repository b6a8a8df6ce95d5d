// dthrottle in WebAssembly for Node, as a CommonJS module. It needs no `init`.
'use strict';

const { adapt } = require('./adapt.js');
const glue = require('./dthrottle.js');
const { makeApi } = require('./api/index.js');
const { makeAddLink } = require('./link.js');

const api = makeApi(adapt(glue), () => performance.now(), makeAddLink(glue));

/** Does nothing. It exists so that the same program runs on the web. */
async function init() {}

// The type checker does not know the method `link`.
module.exports = /** @type {typeof import('./index.js')} */ (/** @type {any} */ ({ ...api, init }));
