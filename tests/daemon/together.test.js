// A daemon and servers with the library share a table; daemons are nodes of a cluster. The two tests
// run at the same time, because they mostly wait.
'use strict';

const assert = require('node:assert/strict');
const dgram = require('node:dgram');
const { once } = require('node:events');
const { connect } = require('node:net');
const { describe, it } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { Client } = require('../../bindings-node/client.js');
const { burst } = require('../web-node/load.js');
const { TestServers, request } = require('../web-node/servers.js');
const { Daemon } = require('./daemons.js');

const LONG_TIMEOUT = { timeoutMs: 30_000 };
const RATE = 100;
const BURST = 100;
const SECONDS = 20;
const WORKERS = 20;

/** Queries a report. */
async function report(daemon, verb) {
  const socket = connect(daemon.socket);
  socket.setEncoding('utf8').write(`\0${verb}\n`);
  let text = '';
  for await (const part of socket) {
    text += part;
    if (text.endsWith('\n')) break;
  }
  return JSON.parse(text.replace(/^OK /, ''));
}

async function freePorts(count) {
  const sockets = Array.from({ length: count }, () => dgram.createSocket('udp4').bind(0, '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'listening')));
  const ports = sockets.map((socket) => socket.address().port);
  sockets.forEach((socket) => socket.close());
  return ports;
}

describe('daemons and libraries', { concurrency: true }, () => {
  it('a daemon, gunicorn and Express with one named table allow exactly the burst', async (t) => {
    const servers = new TestServers();
    t.after(() => servers.end());
    const daemon = await new Daemon('rate = "1 per 100 years"\nburst = 100').start();
    t.after(() => daemon.end());
    // They use the same configuration file, as docs/daemon.md recommends.
    const { config } = daemon;
    const [express, gunicorn] = await Promise.all([
      servers.node(servers.folder(), { file: config, routes: ['/limited'], tag: 'header:X-Client' }),
      servers.gunicorn(servers.folder(), config),
    ]);
    const clients = Array.from({ length: 4 }, () => new Client({ path: daemon.socket, ...LONG_TIMEOUT }));
    // One request for each, before the bucket can be empty.
    for (const { port } of [express, gunicorn]) assert.equal((await request(port, '/limited')).status, 200);
    assert.ok(await clients[0].allow('client'));
    const lines = async (client) => {
      let passed = 0;
      for (let i = 0; i < 40; i += 1) {
        passed += Number(await client.allow('client'));
        await sleep(5);
      }
      return passed;
    };
    const [one, two, ...asked] = await Promise.all([
      burst(express.port, 150, 'client', '/limited'),
      burst(gunicorn.port, 150, 'client', '/limited'),
      ...clients.map(lines),
    ]);
    clients.forEach((client) => client.close());
    const three = asked.reduce((sum, passed) => sum + passed, 0);
    const each = [one.statuses[200] ?? 0, two.statuses[200] ?? 0, three].map((passed) => 1 + passed);
    assert.equal(each.reduce((sum, passed) => sum + passed), 100, String(each));
    assert.equal((one.statuses[429] ?? 0) + (two.statuses[429] ?? 0), 302 - each[0] - each[1]);
    for (const client of clients) assert.equal(client.counts().failedOpen, 0);
  });

  it('three daemons with 20 workers each share one bucket in a cluster', async (t) => {
    const ports = await freePorts(3);
    const daemons = ports.map((mine) => {
      const peers = ports.filter((port) => port !== mine).map((port) => `"127.0.0.1:${port}"`);
      const cluster = `{ name = "three", without_secret = true, listen = "127.0.0.1:${mine}", peers = [${peers}] }`;
      return new Daemon(`rate = "${RATE}/s"\nburst = ${BURST}\ncluster = ${cluster}`, `workers = ${WORKERS}`);
    });
    t.after(() => Promise.all(daemons.map((daemon) => daemon.end())));
    await Promise.all(daemons.map((daemon) => daemon.start()));
    for (const daemon of daemons) {
      while ((await report(daemon, 'peers')).peers.filter(({ state }) => state === 'up').length < 2) await sleep(20);
    }
    const clients = daemons.flatMap(({ socket: path }) => Array.from({ length: WORKERS }, () => new Client({ path, ...LONG_TIMEOUT })));
    const times = [];
    let asked = 0;
    const end = performance.now() + SECONDS * 1000;
    await Promise.all(clients.map(async (client, number) => {
      await sleep(2 * number);
      while (performance.now() < end) {
        const begin = performance.now();
        asked += 1;
        if (await client.allow('client')) times.push(performance.now());
        await sleep(Math.max(1, 120 - (performance.now() - begin)));
      }
      assert.equal(client.counts().failedOpen, 0);
      client.close();
    }));
    const seconds = (Math.max(...times) - Math.min(...times)) / 1000;
    const exact = BURST + RATE * seconds;
    assert.ok(asked > 1.5 * times.length, `too few checks to show anything: ${asked}`);
    assert.ok(Math.abs(times.length / exact - 1) < 0.02, `${times.length} passed; one bucket gives ${exact}`);
    const shares = await Promise.all(daemons.map(async (daemon) => (await report(daemon, 'stats')).allowed));
    assert.ok(shares.every((share) => share > 0), String(shares));
    assert.equal(shares.reduce((sum, share) => sum + share), times.length);
  });
});
