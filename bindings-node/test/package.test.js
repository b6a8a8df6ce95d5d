// The package as npm packs and installs it.
'use strict';

const { join } = require('node:path');

const { testPackage } = require('./shared/package.js');

const types = ['usage.mts', 'usage.cts'].map((name) => join(__dirname, 'types', name));

testPackage('dthrottle', join(__dirname, '..'), {
  files: [
    'LICENSE-APACHE',
    'LICENSE-MIT',
    'README.md',
    'client.d.ts',
    'client.js',
    `dthrottle.${process.platform}-${process.arch}.node`,
    'face/clocks.js',
    'face/errors.js',
    'face/index.js',
    'face/values.js',
    'face/words.js',
    'index.d.mts',
    'index.d.ts',
    'index.js',
    'index.mjs',
    'native.js',
    'package.json',
  ],
  types,
  modes: { nodenext: ['usage.mts', 'usage.cts'], node16: ['usage.mts', 'usage.cts'], bundler: ['usage.mts'] },
});
