// Tests that a panic of the addon is an error and does not end the process. The debug build has functions that panic.
// It also checks for integer overflow, so the vectors run with it, too.
'use strict';

const assert = require('node:assert/strict');
const { readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');
const { describe, it } = require('node:test');

const { makeApi } = require('../api/index.js');
const { load } = require('../native.js');
const { failsWith, testVectors } = require('./shared/vectors.js');

const ROOT = join(__dirname, '../..');
/** The debug build, from `make test-node`. */
const ADDON = join(ROOT, 'target/debug/dthrottle.node');
const native = load(ADDON);
const { panicHot, panicNow } = /** @type {any} */ (native);

describe('panics', () => {
  it('every panic becomes an internal error', () => {
    const dthrottle = makeApi({ ...native, allow: panicHot, check: panicHot, name: panicNow });
    const throttle = new dthrottle.Throttle('1/s');
    for (let i = 0; i < 3; i += 1) {
      for (const call of [() => throttle.allow('t'), () => throttle.check('t'), () => throttle.name]) {
        assert.throws(call, (/** @type {any} */ error) => {
          assert.match(error.message, /a bug in dthrottle: .*a panic for tests/);
          assert.ok(error.cause instanceof Error);
          return failsWith(/** @type {any} */ (dthrottle), 'internal')(error);
        });
      }
    }
    assert.equal(throttle.peek('t').allowed, true);
  });

  it('every export catches panics', () => {
    const folder = join(__dirname, '../src');
    const sources = readdirSync(folder).filter((name) => name.endsWith('.rs'));
    const texts = sources.map((name) => readFileSync(join(folder, name), 'utf8')).join('');
    const macros = texts.match(/^\s*#\[napi.*\]$/gm) ?? [];
    // All hot calls use one function, which the first test covers.
    const hot = texts.match(/^\s*environment\.export::<\w+>/gm) ?? [];
    const exports = macros.filter((line) => !line.includes('module_exports'));
    assert.equal(macros.length, exports.length + 1);
    const calls = Object.values(native).filter((value) => typeof value === 'function');
    assert.equal(exports.length + hot.length, calls.length);
    for (const line of exports) assert.match(line, /catch_unwind/);
  });

  it('the release build has no function that panics', () => {
    const release = load(join(__dirname, `../dthrottle.${process.platform}-${process.arch}.node`));
    for (const name of ['panicNow', 'panicHot']) assert.equal(name in release, false);
  });

  it('wrong arguments for the addon throw errors and do not crash the process', () => {
    const words = ['t1', 'rate', 'sunlimited'];
    const handle = native.fromConfig(words, undefined);
    const clock = native.newClock();
    const { name, now, fromConfig } = /** @type {any} */ (native);
    const { allow, check, buffer } = require(ADDON);
    const numbers = new Float64Array(buffer);
    const id = Number(native.domainId(handle));
    const BYTES = 1;
    /**
     * Calls the addon as native.js does, also with values that native.js never writes.
     * @param {any} call
     * @param {number} domain
     * @param {any} tag
     * @param {number} [cost]
     * @param {number} [maxDelayMs]
     * @param {number} [flags]
     */
    const callAddon = (call, domain, tag, cost = 1, maxDelayMs = 0, flags = 0) => {
      new Uint32Array(buffer).set([domain, flags]);
      numbers.set([cost, maxDelayMs], 1);
      return call(tag);
    };
    assert.equal(callAddon(allow, id, 't'), undefined);
    assert.equal(callAddon(allow, id, 't', 2), undefined);
    assert.equal(callAddon(allow, id, 't', 1, NaN), undefined, 'allow must not read maxDelayMs');
    const misuses = [
      ...[undefined, 5, {}, clock, null, Symbol('t')].flatMap((tag) => [
        () => callAddon(allow, id, tag),
        () => callAddon(check, id, tag),
      ]),
      () => allow(),
      () => check(),
      () => callAddon(allow, 1e6, 't'),
      () => callAddon(allow, -1, 't'),
      () => callAddon(check, 2 ** 30 - 1, 't'),
      () => callAddon(check, 2 ** 32 - 1, 't'),
      ...[NaN, -1, 0.5, Infinity, 1e300].flatMap((cost) => [
        () => callAddon(allow, id, 't', cost),
        () => callAddon(allow, id, 't', cost, 0, BYTES),
        () => callAddon(check, id, 't', cost),
      ]),
      () => callAddon(check, id, 't', 1, -1),
      () => callAddon(check, id, 't', 1, NaN),
      () => name(undefined),
      () => now(handle),
      () => fromConfig(['l1000000000']),
      () => fromConfig(['']),
      () => fromConfig(['é']),
      () => fromConfig(['n1x']),
      () => fromConfig(['t1', 'rate']),
      () => fromConfig([]),
      () => fromConfig([5]),
      () => fromConfig(words, handle),
    ];
    for (const misuse of misuses) assert.throws(misuse, Error);
  });
});

testVectors('Node, debug build', /** @type {any} */ (makeApi(native)), 'node');
