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
const EXPECTED = /console\.log\(.*\);? \/\/ (.*)$/gm;

/**
 * Returns what is wrong with a block, or undefined.
 * @param {string} code
 * @param {string} folder
 * @returns {string | undefined}
 */
function problemOf(code, folder) {
  const file = join(folder, code.includes('require(') ? 'block.cjs' : 'block.mjs');
  writeFileSync(file, code);
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 60_000,
  });
  if (status !== 0) return `exit ${status}: ${stderr}`;
  const expected = Array.from(code.matchAll(EXPECTED), ([, text]) => `${text}\n`).join('');
  if (expected === '') return 'it has no comments with output, so it shows nothing';
  return stdout === expected ? undefined : `it printed ${stdout} instead of ${expected}`;
}

/**
 * @param {string} readme
 * @param {string} name The name of the package.
 * @param {string} path Its folder.
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
      assert.equal(problemOf('console.log(1 + 1); // 2\n', folder), undefined);
      assert.match(problemOf('console.log(1 + 1); // 3\n', folder) ?? '', /printed 2/);
      assert.match(problemOf('console.log(1); // 1\nthrow new Error("x");\n', folder) ?? '', /exit 1/);
      assert.match(problemOf('1 + 1;\n', folder) ?? '', /no comments with output/);
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
      it(`block ${blocks} prints what its comments say`, () => assert.equal(problemOf(code, folder), undefined));
    }
    it('the README has code blocks', () => assert.ok(blocks > 0));
  });
}

module.exports = { testReadme };
