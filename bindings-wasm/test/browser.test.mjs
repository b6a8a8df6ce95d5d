// Runs the build for the web in a real Chromium, as separate files and in a bundle of esbuild.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { buildSync } from 'esbuild';
import { chromium } from 'playwright-core';

import builds from './builds.js';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm' };
const PAGE = '<!doctype html><title>dthrottle</title>';

/** A program that uses the package and returns what it found as JSON. */
const program = (specifier) => `
  import init, { BusyThrottle, DthrottleError, ManualClock, Throttle } from '${specifier}';

  export async function run(module) {
    let early;
    try { new Throttle('1/s'); } catch (error) { early = error.code; }
    await init(module);
    const clock = new ManualClock();
    const throttle = new Throttle({ rate: '1/s', burst: 2, clock });
    const decisions = [throttle.check('t', 2), throttle.check('t')];
    clock.advance(1000);
    decisions.push(throttle.check('t'));
    const real = Throttle.fromToml('rate = "100/s"\\nburst = 1');
    const first = real.allow('t');
    const start = performance.now();
    while (!real.allow('t') && performance.now() - start < 5000);
    const link = new Throttle({ rate: '1/s', cluster: { name: 'web', secret: 'sixteen bytes at least' } }).link({ address: '10.0.0.1:7373' });
    link.join(['10.0.0.2:7373']);
    let error;
    try { new Throttle({ rate: 'x' }); } catch (caught) { error = [caught instanceof DthrottleError, caught.field]; }
    return { early, decisions, first, waited: performance.now() - start, sends: link.poll().datagram.length > 0, error, busy: new BusyThrottle({}).shouldSend('api') };
  }
`;

/** A server for the files of the package, and for `more` by their paths. */
async function serve(more) {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, 'http://host').pathname);
    const file = join(builds.PACKAGE, path);
    const body = more[path] ?? (existsSync(file) ? readFileSync(file) : undefined);
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' });
    response.end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

describe('the build for the web in Chromium', { timeout: 120_000 }, () => {
  let browser;
  let server;
  before(async () => {
    const stdin = { contents: program('dthrottle-wasm'), resolveDir: join(builds.PACKAGE, '..') };
    const alias = { 'dthrottle-wasm': join(builds.PACKAGE, 'web/index.js') };
    const bundle = buildSync({ stdin, alias, bundle: true, format: 'esm', platform: 'browser', write: false, logLevel: 'error' });
    server = await serve({
      '/index.html': PAGE,
      '/favicon.ico': '',
      '/program.js': program('/web/index.js'),
      '/bundle/program.js': bundle.outputFiles[0].text,
      '/bundle/dthrottle_bg.wasm': readFileSync(join(builds.PACKAGE, 'web/dthrottle_bg.wasm')),
    });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });

  for (const [name, path] of [['its own files', '/program.js'], ['a bundle of esbuild', '/bundle/program.js']]) {
    it(`the package limits a tag when loaded from ${name}`, async () => {
      const page = await browser.newPage();
      const problems = [];
      page.on('console', (message) => ['error', 'warning'].includes(message.type()) && problems.push(message.text()));
      page.on('pageerror', (error) => problems.push(String(error)));
      await page.goto(`http://127.0.0.1:${server.address().port}/index.html`);
      const found = await page.evaluate(async (script) => (await import(script)).run(), path);
      assert.equal(found.early, 'DTHROTTLE_ARGUMENT');
      assert.deepEqual(found.decisions.map(({ allowed, remaining }) => [allowed, remaining]), [[true, 0], [false, 0], [true, 0]]);
      assert.equal(found.decisions[1].retryAfterMs, 1000);
      assert.equal(found.first, true);
      // By the clock of the page, the next unit is available after 10 ms.
      assert.ok(found.waited > 5 && found.waited < 5000, `${found.waited} ms`);
      assert.deepEqual([found.sends, found.error, found.busy], [true, [true, 'rate'], true]);
      assert.deepEqual(problems, []);
      await page.close();
    });
  }
});
