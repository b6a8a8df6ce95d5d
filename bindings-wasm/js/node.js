// dthrottle in WebAssembly for Node, as a CommonJS module. It is ready at once.
'use strict';

const { adapt } = require('./adapt.js');
const glue = require('./dthrottle.js');
const { makeApi } = require('./api/index.js');
const { linksOf } = require('./link.js');

const api = makeApi(adapt(glue), () => performance.now(), linksOf(glue));

/** Does nothing: it is here so that the same program runs on the web. */
async function init() {}

// What `linksOf` adds is not seen by the checker.
module.exports = /** @type {typeof import('./index.js')} */ (/** @type {any} */ ({ ...api, init }));
