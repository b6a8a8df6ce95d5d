// Packs a package with npm, installs it offline in an empty folder, and uses it there with require, import, and
// TypeScript in each mode of module resolution.
'use strict';

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join, posix } = require('node:path');
const { after, before, describe, it } = require('node:test');

const ROOT = join(__dirname, '../../..');
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');

/** The version of the workspace, from Cargo.toml. */
const VERSION = /^\[workspace\.package\]\nversion = "(.*)"$/m.exec(
  readFileSync(join(ROOT, 'Cargo.toml'), 'utf8'),
)?.[1];

/**
 * @param {string} cwd
 * @param {string} command
 * @param {string[]} args
 */
function run(cwd, command, ...args) {
  try {
    return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    const { stdout, stderr } = /** @type {{ stdout: string, stderr: string }} */ (error);
    throw new Error(`${command} ${args.join(' ')}\n${stdout}${stderr}`, { cause: error });
  }
}

/** Code that prints yes if the throttle of a program's `dthrottle` works. */
const USE = `
const throttle = new dthrottle.Throttle({ rate: '1/s', clock: new dthrottle.ManualClock() });
console.log(throttle.allow('t') && !throttle.allow('t') ? 'yes' : 'no');
`;

/** A link in Markdown. */
const LINK = /\]\(([^)\s]+)\)/g;
/** A page of the documentation, in code or in text. */
const PAGE = /\bdocs\/[a-z-]+\.md(?:#[a-z_-]*[a-z])?/g;

/**
 * The target of a link as a path in the package, with its anchor.
 * @param {string} path
 * @param {string} link
 */
function resolveLink(path, link) {
  return link.startsWith('#') ? path + link : posix.join(posix.dirname(path), link);
}

/**
 * The anchors of a page's headings.
 * @param {string} path
 */
function anchors(path) {
  const headings = readFileSync(path, 'utf8').matchAll(/^#+ (.*)$/gm);
  return Array.from(headings, ([, title]) => title.toLowerCase().replaceAll(/[^\w\s-]/g, '').replaceAll(' ', '-'));
}

/**
 * @typedef {object} Expected
 * @property {string[]} files All files of the package.
 * @property {string[]} types Programs in TypeScript.
 * @property {Record<string, string[]>} modes Which of them compile in each mode of module resolution.
 * @property {string} byDefault The default export for `import`, as an expression of `required`.
 * @property {string[]} [parts] Modules with names of their own.
 * @property {string[]} [others] Packages that the programs need.
 */

/**
 * @param {string} name
 * @param {string} path The folder of the package.
 * @param {Expected} expected
 */
function testPackage(name, path, { files, types, modes, byDefault, parts = [], others = [] }) {
  describe(`package ${name}`, () => {
    let folder = '';
    /** @type {{ filename: string, version: string, files: { path: string }[] }} */
    let packed;
    before(() => {
      folder = mkdtempSync(join(tmpdir(), 'dthrottle-package-'));
      [packed] = JSON.parse(run(path, 'npm', 'pack', '--json', '--silent', '--pack-destination', folder));
      const home = join(folder, 'home');
      mkdirSync(home);
      writeFileSync(join(home, 'package.json'), '{ "private": true }');
      run(home, 'npm', 'install', '--offline', '--silent', join(folder, packed.filename));
    });
    after(() => rmSync(folder, { recursive: true }));

    it('the package has the version of the workspace', () => {
      assert.match(String(VERSION), /^\d+\.\d+\.\d+/);
      assert.equal(packed.version, VERSION);
    });

    it('the package contains exactly the expected files', () => {
      assert.deepEqual(packed.files.map((file) => file.path).sort(), [...files].sort());
    });

    it('the package has no dependencies', () => {
      const listed = JSON.parse(run(join(folder, 'home'), 'npm', 'ls', '--all', '--json'));
      assert.deepEqual(Object.keys(listed.dependencies), [name]);
      // Optional dependencies are listed, but not installed.
      assert.deepEqual(Object.values(listed.dependencies[name].dependencies ?? {}).filter((other) => 'version' in other), []);
    });

    it('the package works with require()', () => {
      const file = join(folder, 'home/main.cjs');
      writeFileSync(file, `const dthrottle = require('${name}');${USE}`);
      assert.equal(run(folder, process.execPath, file), 'yes\n');
    });

    it('import returns the same exports as require(), and the default export', () => {
      const file = join(folder, 'home/main.mjs');
      const same = `
        import { createRequire } from 'node:module';
        const required = createRequire(import.meta.url)('${name}');
        const { default: byDefault, ...named } = dthrottle;
        console.log(JSON.stringify([Object.keys(named), Object.keys(required)].map((list) => list.sort())));
        console.log(Object.keys(required).every((key) => required[key] === named[key]));
        console.log(byDefault === (${byDefault}));
      `;
      writeFileSync(file, `import * as dthrottle from '${name}';${USE}${same}`);
      const [works, names, equal, isDefault] = run(folder, process.execPath, file).trim().split('\n');
      assert.deepEqual([works, isDefault], ['yes', 'true']);
      const [imported, required] = JSON.parse(names);
      assert.deepEqual(imported, required);
      assert.equal(equal, 'true');
    });

    for (const part of parts) {
      it(`the module ${part} exports the same to require() and import`, () => {
        const file = join(folder, 'home/part.mjs');
        writeFileSync(file, `
          import * as imported from '${name}/${part}';
          import { createRequire } from 'node:module';
          const required = createRequire(import.meta.url)('${name}/${part}');
          const names = Object.keys(required);
          console.log(names.length > 0 && names.every((key) => key === 'default' || required[key] === imported[key]));
          console.log(imported.default === required && (!('throttle' in required) || required === required.throttle));
        `);
        assert.equal(run(folder, process.execPath, file), 'true\ntrue\n');
      });
    }

    it('links and file names in the package lead to files that it contains', () => {
      const paths = packed.files.map((file) => file.path);
      for (const page of paths.filter((each) => /\.(?:md|js|mjs|d\.ts)$/.test(each))) {
        const text = readFileSync(join(folder, 'home/node_modules', name, page), 'utf8');
        const links = page.endsWith('.md') ? Array.from(text.matchAll(LINK), ([, link]) => link) : [];
        const targets = links.filter((link) => !link.includes('://')).map((link) => resolveLink(page, link));
        for (const target of [...targets, ...Array.from(text.matchAll(PAGE), ([mention]) => mention)]) {
          const [file, anchor] = target.split('#');
          assert.ok(paths.includes(file), `${page} names ${target}, which is not in the package`);
          if (anchor) assert.ok(anchors(join(folder, 'home/node_modules', name, file)).includes(anchor), `${page}: ${target}`);
        }
      }
    });

    for (const [mode, programs] of Object.entries(modes)) {
      it(`programs in TypeScript compile with module resolution ${mode}`, () => {
        const home = join(folder, 'home');
        for (const other of others) {
          const link = join(home, 'node_modules', other);
          rmSync(link, { force: true });
          symlinkSync(join(ROOT, 'node_modules', other), link, 'dir');
        }
        for (const program of types) {
          const text = readFileSync(program, 'utf8').replaceAll(/'dthrottle(?=['/])/g, `'${name}`);
          writeFileSync(join(home, program.replace(/.*\//, '')), text);
        }
        const module = mode === 'bundler' ? 'esnext' : mode;
        const flags = ['--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2022,dom'];
        run(home, process.execPath, TSC, ...flags, '--module', module, '--moduleResolution', mode, ...programs);
      });
    }
  });
}

module.exports = { ROOT, run, testPackage };
