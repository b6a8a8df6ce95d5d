// Tests of bundles by esbuild, which cannot contain the native part.
'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, describe, it } = require('node:test');

const { buildSync } = require('esbuild');

const PROGRAM = `
  import throttle from 'dthrottle/http';
  import { ManualClock } from 'dthrottle';
  const { domain } = throttle(() => {}, { rate: '1/s', clock: new ManualClock() });
  console.log(domain.allow('t'), domain.allow('t'));
`;

describe('a bundle of esbuild for Node', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dthrottle-bundle-'));
  after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(join(__dirname, '..'), join(folder, 'node_modules/dthrottle'), 'dir');
  writeFileSync(join(folder, 'main.js'), PROGRAM);

  for (const format of /** @type {const} */ (['esm', 'cjs'])) {
    /** @param {string[]} external */
    const run = (external) => {
      const outfile = join(folder, format === 'esm' ? 'bundle.mjs' : 'bundle.cjs');
      buildSync({ entryPoints: [join(folder, 'main.js')], outfile, bundle: true, platform: 'node', format, external, logLevel: 'error' });
      return spawnSync(process.execPath, [outfile], { cwd: folder, encoding: 'utf8' });
    };

    it(`a bundle as ${format} works if dthrottle is external`, () => {
      const { stdout, stderr } = run(['dthrottle']);
      assert.equal(stdout, 'true false\n', stderr);
    });

    // A bundle as an ES module fails earlier, because esbuild replaces require().
    it(`a bundle as ${format} fails if dthrottle is part of it`, () => {
      assert.match(run([]).stderr, format === 'esm' ? /Dynamic require/ : /mark dthrottle as external \(esbuild --external:dthrottle\)/);
    });
  }
});
