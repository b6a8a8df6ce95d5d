// The package as npm packs and installs it.
'use strict';

const { readdirSync } = require('node:fs');
const { join } = require('node:path');

const { testPackage } = require('./shared/package.js');

const PROGRAMS = ['usage.mts', 'usage.cts', 'web.mts', 'web.cts'];
const types = PROGRAMS.map((name) => join(__dirname, 'types', name));

const WEB = readdirSync(join(__dirname, '../web'));

testPackage('dthrottle', join(__dirname, '..'), {
  files: [
    'LICENSE-APACHE',
    'LICENSE-MIT',
    'README.md',
    'client.d.ts',
    'client.js',
    ...['busy', 'cluster', 'configuration', 'daemon', 'http', 'node', 'semantics', 'table'].map((page) => `docs/${page}.md`),
    `dthrottle.${process.platform}-${process.arch}.node`,
    'busy/abort.js',
    'busy/caller.js',
    'busy/index.d.ts',
    'busy/index.js',
    'busy/retry.js',
    'busy/undici.js',
    'api/busy.js',
    'api/clocks.js',
    'api/encode_config.js',
    'api/errors.js',
    'api/index.js',
    'api/middleware.js',
    'api/records.js',
    'api/values.js',
    'index.d.mts',
    'index.d.ts',
    'index.js',
    'index.mjs',
    'native.js',
    'package.json',
    'smockron/delays.js',
    'smockron/index.d.ts',
    'smockron/index.js',
    'smockron/master.js',
    'smockron/reader.js',
    ...WEB.map((name) => `web/${name}`),
  ],
  types,
  modes: { nodenext: PROGRAMS, node16: PROGRAMS, bundler: PROGRAMS.filter((name) => name.endsWith('.mts')) },
  byDefault: 'required',
  parts: ['address', 'busy', 'client', 'express', 'fastify', 'hono', 'http', 'koa', 'smockron'],
  others: ['@types', 'express', 'fastify', 'hono'],
});
