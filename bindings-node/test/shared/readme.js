// Runs the code blocks of a README in a folder where the package is installed. The output of a block must match the
// comments after its calls of console.log().
'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, describe, it } = require('node:test');

const BLOCK = /^```(\w+)[^\n]*\n(.*?)^```$/gms;
const PROMISE = /console\.log\(.*\);? \/\/ (.*)$/gm;

/**
 * Returns what is wrong with a block, or undefined.
 * @param {string} code
 * @param {string} folder
 * @returns {string | undefined}
 */
function fault(code, folder) {
  const file = join(folder, code.includes('require(') ? 'block.cjs' : 'block.mjs');
  writeFileSync(file, code);
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 60_000,
  });
  if (status !== 0) return `exit ${status}: ${stderr}`;
  const promised = Array.from(code.matchAll(PROMISE), ([, text]) => `${text}\n`).join('');
  if (promised === '') return 'it promises no output, so it shows nothing';
  return stdout === promised ? undefined : `it printed ${stdout} instead of ${promised}`;
}

/**
 * @param {string} readme
 * @param {string} name The package, and
 * @param {string} path where it is.
 * @param {string[]} others Other packages that its blocks use.
 */
function testReadme(readme, name, path, others = []) {
  describe(`README of ${name}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'dthrottle-readme-'));
    after(() => rmSync(folder, { recursive: true }));
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(path, join(folder, 'node_modules', name), 'dir');
    for (const other of others) {
      symlinkSync(join(__dirname, '../../../node_modules', other), join(folder, 'node_modules', other), 'dir');
    }

    it('the check reports a block whose output differs from its comments', () => {
      assert.equal(fault('console.log(1 + 1); // 2\n', folder), undefined);
      assert.match(fault('console.log(1 + 1); // 3\n', folder) ?? '', /printed 2/);
      assert.match(fault('console.log(1); // 1\nthrow new Error("x");\n', folder) ?? '', /exit 1/);
      assert.match(fault('1 + 1;\n', folder) ?? '', /promises no output/);
    });

    const text = readFileSync(readme, 'utf8');
    it('the README has the sections of every binding', () => {
      const sections = Array.from(text.matchAll(/^## (.*)$/gm), ([, title]) => title);
      assert.deepEqual(sections, ['Installation', 'Usage', 'Development', 'Testing']);
    });

    let blocks = 0;
    for (const [, language, code] of text.matchAll(BLOCK)) {
      if (language === 'toml') writeFileSync(join(folder, 'dthrottle.toml'), code);
      if (language !== 'js') continue;
      blocks += 1;
      it(`block ${blocks} prints what its comments say`, () => assert.equal(fault(code, folder), undefined));
    }
    it('the README has code blocks', () => assert.ok(blocks > 0));
  });
}

module.exports = { testReadme };
