// Tests of the package as npm packs and installs it, and of its README.
import { fileURLToPath } from 'node:url';

import shared from '../../bindings-node/test/shared/package.js';
import readme from '../../bindings-node/test/shared/readme.js';
import builds from './builds.js';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

const api = ['busy.js', 'clocks.js', 'encode_config.js', 'errors.js', 'index.js', 'middleware.js', 'records.js', 'values.js'].map((name) => `api/${name}`);
const glue = ['dthrottle.d.ts', 'dthrottle.js', 'dthrottle_bg.wasm.d.ts'];
const types = ['index.d.ts', 'links.d.ts', 'surface.d.ts', 'types.d.ts'];
const common = [...api, ...glue, ...types, 'adapt.js', 'index.js', 'link.js'];

shared.testPackage('dthrottle-wasm', builds.PACKAGE, {
  files: [
    ...['LICENSE-APACHE', 'LICENSE-MIT', 'README.md', 'package.json'],
    ...['busy', 'cluster', 'configuration', 'semantics', 'table'].map((page) => `docs/${page}.md`),
    ...[...common, 'index.d.mts', 'index.mjs', 'module.js'].map((name) => `node/${name}`),
    ...[...common, 'dthrottle_bg.wasm', 'package.json'].map((name) => `web/${name}`),
  ],
  byDefault: 'required.init',
  types: [
    path('../../bindings-node/test/types/usage.mts'),
    path('../../bindings-node/test/types/usage.cts'),
    path('types/web.mts'),
  ],
  modes: {
    nodenext: ['usage.mts', 'usage.cts', 'web.mts'],
    node16: ['usage.mts', 'usage.cts', 'web.mts'],
    bundler: ['usage.mts', 'web.mts'],
  },
});

readme.testReadme(path('../README.md'), 'dthrottle-wasm', builds.PACKAGE);
