// Tests of loading on the web, traps, growing memory, and a host without files.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import builds from './builds.js';

const require = createRequire(import.meta.url);
const { PACKAGE } = builds;
const web = await builds.loadWeb();
const both = { node: builds.node, web };

/**
 * Runs an ES module in a new process, where nothing is loaded yet, and returns its output.
 * @param {string} code
 * @param {string[]} flags
 */
function program(code, ...flags) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [...flags, '--input-type=module', '-e', code],
    { cwd: PACKAGE, encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);
  return stdout.trim();
}

describe('the build for the web', () => {
  const HEAD = `
    import { readFileSync } from 'node:fs';
    import { createServer } from 'node:http';
    import { init, ManualClock, Throttle } from './web/index.js';
    const file = './web/dthrottle_bg.wasm';
    const works = () => console.log(new Throttle({ rate: 1, clock: new ManualClock() }).allow('t'));
  `;

  it('a call before init() is an error that says so', () => {
    const code = `${HEAD}
      for (const make of [() => new Throttle('1/s'), () => new ManualClock(), () => Throttle.fromToml('')]) {
        try { make(); } catch (error) { console.log(error.code, error.message); }
      }
      await init(readFileSync(file));
      works();
    `;
    const message = 'DTHROTTLE_ARGUMENT dthrottle is not loaded yet; call await init() first';
    assert.equal(program(code), [message, message, message, 'true'].join('\n'));
  });

  it('init() loads the module from bytes, once or several times', () => {
    const code = `${HEAD} await init(readFileSync(file)); works(); await init(); works();`;
    assert.equal(program(code), 'true\ntrue');
  });

  it('init() accepts a WebAssembly.Module', () => {
    const code = `${HEAD} await init(await WebAssembly.compile(readFileSync(file))); works();`;
    assert.equal(program(code), 'true');
  });

  it('init() accepts an address or a Response', () => {
    const code = `${HEAD}
      const server = createServer((request, response) => {
        response.setHeader('content-type', 'application/wasm').end(readFileSync(file));
      });
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
      const address = 'http://127.0.0.1:' + server.address().port + '/any.wasm';
      await init(ARGUMENT);
      works();
      server.close();
      server.closeAllConnections();
    `;
    for (const argument of ['address', 'new URL(address)', 'await fetch(address)', 'fetch(address)']) {
      assert.equal(program(code.replace('ARGUMENT', argument)), 'true', argument);
    }
  });

  it('init() loads the file beside the script', () => {
    const code = `${HEAD}
      globalThis.fetch = async (url) => {
        console.log(new URL(url).pathname.endsWith('/pkg/web/dthrottle_bg.wasm'));
        return new Response(readFileSync(url), { headers: { 'content-type': 'application/wasm' } });
      };
      await init();
      works();
    `;
    assert.equal(program(code), 'true\ntrue');
  });

  it('init() can be called again after a failure', () => {
    const code = `${HEAD}
      for (const wrong of [new Uint8Array(3), 'http://127.0.0.1:1/', 5]) {
        await init(wrong).then(() => console.log('loaded'), (error) => console.log(error instanceof Error));
      }
      await init(readFileSync(file));
      works();
    `;
    assert.equal(program(code), 'true\ntrue\ntrue\ntrue');
  });

  it('init() can be called twice at once', () => {
    const code = `${HEAD}
      await Promise.all([init(readFileSync(file)), init(readFileSync(file))]);
      works();
    `;
    assert.equal(program(code), 'true');
  });

  it('init() rejects a wrong module', () => {
    const code = `${HEAD}
      const empty = new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
      for (const wrong of [empty, undefined, new Uint8Array(3)]) {
        await init(wrong).then(() => console.log('loaded'), (error) => console.log(error instanceof Error));
      }
    `;
    assert.equal(program(code), 'true\ntrue\ntrue');
  });

  it('the build for the web runs without globals of Node', () => {
    const code = `
      import { readFileSync } from 'node:fs';
      const bytes = readFileSync('./web/dthrottle_bg.wasm');
      // Node creates these on first use, for which it needs its own globals.
      [fetch, Request, Response, performance, crypto];
      for (const name of ['process', 'Buffer', 'global', 'setImmediate']) delete globalThis[name];
      const { init, Throttle } = await import('./web/index.js');
      await init(bytes);
      const throttle = new Throttle('2/s');
      console.log(throttle.allow('t'), throttle.check('t').limit, throttle.rules.length);
    `;
    assert.equal(program(code), 'true 2 1');
  });
});

for (const [label, dthrottle] of Object.entries(both)) {
  describe(`WebAssembly, ${label}`, () => {
    it('the package exports the names of the Node package and init', () => {
      const names = [...Object.keys(require('../../bindings-node/api/index.js').makeApi({})), 'init'];
      assert.deepEqual(Object.keys(dthrottle).filter((name) => name !== 'default').sort(), names.sort());
    });

    it('fromFile() is an error', () => {
      assert.throws(() => dthrottle.Throttle.fromFile('dthrottle.toml'), {
        name: 'DthrottleError',
        code: 'DTHROTTLE_FILE',
        message: /fromToml/,
      });
    });

    it('decisions are right while the memory grows', () => {
      const clock = new dthrottle.ManualClock();
      const throttle = new dthrottle.Throttle({ rate: 10, clock, table: { size: 400_000 } });
      for (let i = 0; i < 200_000; i += 1) assert.equal(throttle.check(`tag ${i}`, 3).balance, 7);
      assert.equal(throttle.check('x'.repeat(1 << 24)).balance, 9);
      assert.equal(throttle.check('tag 5', 3).balance, 4);
      // Sometimes a bucket is evicted although other lines have free slots.
      const { buckets, evicted } = throttle.stats();
      assert.equal(buckets + evicted, 200_001);
    });

    it('each throttle has its own random fingerprint key', () => {
      const { getRandomValues } = crypto;
      let calls = 0;
      crypto.getRandomValues = (array) => {
        calls += 1;
        return getRandomValues.call(crypto, array);
      };
      try {
        new dthrottle.Throttle('1/s');
        dthrottle.Throttle.fromToml('rate = 1');
      } finally {
        crypto.getRandomValues = getRandomValues;
      }
      assert.equal(calls, 2);
    });
  });
}

describe('a trap', () => {
  it('a trap is an internal error, and other throttles keep working', () => {
    const { makeApi } = require('../pkg/node/api/index.js');
    const { adapt } = require('../pkg/node/adapt.js');
    const native = adapt(require('../pkg/node/dthrottle.js'));
    // The pointer of the handle is far beyond the memory, so the module traps.
    const broken = {
      ...native,
      fromConfig: (...args) => Object.assign(native.fromConfig(...args), { __wbg_ptr: 0x7ffffff0 }),
    };
    const dthrottle = makeApi(broken, () => 0);
    const throttle = new dthrottle.Throttle('1/s');
    for (const call of [() => throttle.allow('t'), () => throttle.check('t'), () => throttle.rules]) {
      assert.throws(call, (error) => {
        assert.equal(error.code, 'DTHROTTLE_INTERNAL');
        assert.ok(error instanceof dthrottle.DthrottleError);
        assert.ok(error.cause instanceof WebAssembly.RuntimeError);
        return true;
      });
    }
    assert.equal(new builds.node.Throttle('1/s').allow('t'), true);
  });
});

describe('the memory of the module', () => {
  it('the memory of unreachable throttles is used again', () => {
    const code = `
      import { createRequire } from 'node:module';
      const require = createRequire(process.cwd() + '/');
      const { ManualClock, Throttle } = require('./node/index.js');
      const size = () => require('./node/dthrottle.js').memoryOfModule().buffer.byteLength;
      const clock = new ManualClock();
      const rest = () => new Promise((resolve) => setImmediate(() => { gc(); setImmediate(resolve); }));
      async function churn(rounds) {
        for (let i = 0; i < rounds; i += 1) {
          for (let n = 0; n < 1000; n += 1) {
            const throttle = new Throttle({ rate: 100, domains: { api: { rate: 5 } }, clock });
            for (let tag = 0; tag < 100; tag += 1) throttle.domain('api').check('tag' + tag);
          }
          await rest();
        }
      }
      await churn(2);
      const before = size();
      await churn(10);
      console.log((size() - before) / 1e6);
    `;
    const grown = Number(program(code, '--expose-gc'));
    // 10,000 throttles with 100 buckets each would need far more than 100 MB.
    assert.ok(grown < 30, `the memory grew by ${grown} MB`);
  });

  it('the module is smaller than 1,030,000 bytes', (t) => {
    const { size } = statSync(join(PACKAGE, 'web/dthrottle_bg.wasm'));
    t.diagnostic(`dthrottle_bg.wasm has ${size} bytes`);
    // The present size plus 5 %. The policy of HTTP middleware has 8 % of the code, configurations with TOML 8 %, cluster
    // and membership 14 %.
    assert.ok(size < 1_030_000);
  });
});
