// The page in a real Chromium. Writes screenshots of the light and dark theme to target/page/.
/* global document, getComputedStyle -- in the page */
'use strict';

const assert = require('node:assert/strict');
const { createSocket } = require('node:dgram');
const { mkdirSync } = require('node:fs');
const { join } = require('node:path');
const test = require('node:test');

const { chromium } = require('playwright-core');

const { Client } = require('../../bindings-node/client.js');
const { Daemon, TOKEN } = require('./daemons.js');

const OUT = join(__dirname, '../../target/page');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Returns a free UDP port. */
function freePort() {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    socket.bind(0, '127.0.0.1', () => {
      const { port } = socket.address();
      socket.close(() => resolve(port));
    });
  });
}

async function pair() {
  const [one, two] = [await freePort(), await freePort()];
  const rules = (own, other) => `rate = "50/s"\nburst = 5\n[domains.login]\nrate = "5 per minute"
[cluster]\nname = "page"\nlisten = "127.0.0.1:${own}"\npeers = ["127.0.0.1:${other}"]\n`;
  return Promise.all([new Daemon(rules(one, two)).start(), new Daemon(rules(two, one)).start()]);
}

test('the page of the daemon works in a browser', { timeout: 90_000 }, async (t) => {
  mkdirSync(OUT, { recursive: true });
  const [daemon, other] = await pair();
  t.after(() => Promise.all([daemon.end(), other.end()]));
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  t.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1100, height: 900 } });
  const wrong = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && wrong.push(message.text()));
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(`http://${daemon.http}/`) && !request.url().startsWith('data:')) {
      wrong.push(`requests ${request.url()}`);
    }
  });
  const client = new Client({ path: daemon.socket, timeoutMs: 10_000 });
  t.after(() => client.close());
  const evil = '<img src=x onerror="throw 1">';
  const load = setInterval(() => {
    for (const tag of ['mallory', 'mallory', 'alice', evil, 'eve\u202egro.elpmaxe\u200b']) void client.allow(tag);
  }, 5);
  t.after(() => clearInterval(load));

  await page.goto(`http://${daemon.http}/?token=${TOKEN}`);
  const figure = async (id) => Number((await page.textContent(`#${id}`)).replaceAll(',', ''));
  const until = (what, holds) => page.waitForFunction(holds, undefined, { timeout: 30_000 }).catch(() => assert.fail(what));

  await t.test('the figures change under load', async () => {
    const more = (id, than) => page.waitForFunction(
      ([name, least]) => Number(document.getElementById(name).textContent.replaceAll(',', '')) > least,
      [id, than],
      { timeout: 30_000 },
    );
    await more('refused', 100);
    const before = [await figure('allowed'), await figure('refused')];
    await more('allowed', before[0]);
    await more('refused', before[1]);
    await more('per-second', 50);
    await until('the plot has points', () => document.getElementById('plot-refused').getAttribute('d').includes('L'));
    const tags = await page.locator('#tags td.tag').allTextContents();
    assert.ok(tags[0] === 'mallory' && tags.includes(evil), String(tags));
    assert.ok(tags.includes('eve\\u{202e}gro.elpmaxe\\u{200b}'), String(tags));
    const rules = await page.locator('#rules tbody tr').allInnerTexts();
    assert.deepEqual(rules.map((row) => row.split(/\s+/).join(' ')), ['default rule1 50/s 5', 'login rule1 5/min 5']);
    assert.equal(await page.textContent('#state'), 'live');
  });

  await t.test('the page can be used with the keyboard', async () => {
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'pause');
    await page.keyboard.press('Enter');
    assert.equal(await page.getAttribute('#pause', 'aria-pressed'), 'true');
    const still = await figure('refused');
    await page.waitForTimeout(1500);
    assert.equal(await figure('refused'), still);
    await page.keyboard.press('Space');
    await page.waitForFunction((than) => Number(document.getElementById('refused').textContent.replaceAll(',', '')) > than, still);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'theme');
  });

  await t.test('the theme follows the system and the button', async () => {
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.emulateMedia({ colorScheme: 'light' });
    const light = await back();
    await page.screenshot({ path: join(OUT, 'light.png'), fullPage: true });
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = await back();
    assert.notEqual(light, dark);
    await page.screenshot({ path: join(OUT, 'dark.png'), fullPage: true });
    await page.click('#theme');
    assert.equal(await back(), light);
  });

  await t.test('a killed member turns grey', async () => {
    await until('two members are up', () => document.querySelectorAll('#peers tr.up').length === 2);
    const colour = () => page.evaluate(() => getComputedStyle(document.querySelector('#peers tbody tr:last-child td.state')).color);
    const up = await colour();
    await other.kill();
    await until('the member is down', () => document.querySelector('#peers tbody tr:last-child').className === 'down');
    assert.notEqual(await colour(), up);
    const [red, green, blue] = (await colour()).match(/\d+/g).map(Number);
    assert.ok(Math.max(red, green, blue) - Math.min(red, green, blue) < 40, 'grey');
    await page.screenshot({ path: join(OUT, 'down.png'), fullPage: true });
  });

  await t.test('the page shows that the daemon is gone', async () => {
    assert.deepEqual(wrong, []);
    await daemon.kill();
    await until('the page shows no connection', () => document.getElementById('state').dataset.live === 'no');
  });
});
