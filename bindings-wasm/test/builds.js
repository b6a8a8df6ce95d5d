// Both builds of the package, ready for use.
'use strict';

const { readFileSync } = require('node:fs');
const { join } = require('node:path');

const PACKAGE = join(__dirname, '../pkg');

/** The bytes of the WebAssembly module. */
const bytes = readFileSync(join(PACKAGE, 'web/dthrottle_bg.wasm'));

/** The build for Node. */
const node = require('../pkg/node/index.js');

/** The build for the web, loaded from its bytes. */
async function loadWeb() {
  const web = await import('../pkg/web/index.js');
  await web.init(bytes);
  return web;
}

module.exports = { PACKAGE, bytes, loadWeb, node };
