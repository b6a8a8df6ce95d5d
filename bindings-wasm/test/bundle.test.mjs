// Runs bundles of esbuild for Node, which contain the compiled module.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';

import { buildSync } from 'esbuild';

import builds from './builds.js';

const USE = `
  const throttle = new Throttle({ rate: '1/s', clock: new ManualClock() });
  console.log(throttle.allow('t'), throttle.allow('t'));
`;
const PROGRAMS = {
  import: `import init, { ManualClock, Throttle } from 'dthrottle-wasm'; init().then(() => {${USE}});`,
  require: `const { ManualClock, Throttle } = require('dthrottle-wasm');${USE}`,
};

describe('a bundle of esbuild for Node', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dthrottle-bundle-'));
  after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(builds.PACKAGE, join(folder, 'node_modules/dthrottle-wasm'), 'dir');

  for (const [way, code] of Object.entries(PROGRAMS)) {
    for (const format of ['esm', 'cjs']) {
      it(`a bundle as ${format} runs in an empty folder if the program uses ${way}`, () => {
        const main = join(folder, `${way}.js`);
        writeFileSync(main, code);
        const empty = mkdtempSync(join(folder, 'out-'));
        const outfile = join(empty, format === 'esm' ? 'main.mjs' : 'main.cjs');
        buildSync({ entryPoints: [main], outfile, bundle: true, platform: 'node', format, logLevel: 'error' });
        const { status, stdout, stderr } = spawnSync(process.execPath, [outfile], { cwd: empty, encoding: 'utf8' });
        assert.equal(stdout, 'true false\n', stderr);
        assert.equal(status, 0, stderr);
      });
    }
  }
});
