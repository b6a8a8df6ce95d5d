// The Node client with real daemons, and with servers that send invalid answers.
'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { mkdtempSync, rmSync } = require('node:fs');
const { connect, createServer } = require('node:net');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const test = require('node:test');

const { Client } = require('../../bindings-node/client.js');
const { Daemon, TOKEN } = require('./daemons.js');

const CLIENT = join(__dirname, '../../bindings-node/client.js');
// A busy machine answers late, so only tests of the timeout use a short one.
const LONG_TIMEOUT = { timeoutMs: 10_000 };
const RULES = 'rate = "10 per day"\n[domains."log in"]\nrate = "5 per day"\n[domains.free]\n';

test('a client of a daemon', async (t) => {
  const daemon = await new Daemon(RULES, 'max_delay = "1 day"').start();
  const client = new Client({ path: daemon.socket, ...LONG_TIMEOUT });
  t.after(() => daemon.end());
  t.after(() => client.close());

  await t.test('allow returns true until the bucket is empty, over a path and a port', async () => {
    for (const transport of [{ path: daemon.socket }, { port: daemon.port }]) {
      const one = new Client({ ...transport, ...LONG_TIMEOUT });
      const tag = JSON.stringify(Object.keys(transport));
      const answers = await Promise.all(Array.from({ length: 11 }, () => one.allow(tag)));
      assert.deepEqual(answers, [...Array(10).fill(true), false]);
      assert.deepEqual(one.counts(), { answered: 11, failedOpen: 0, failures: 0 });
      one.close();
    }
  });

  await t.test('20,000 checks at once are all answered', async () => {
    const asked = Array.from({ length: 20_000 }, (_, i) => client.allow(`many-${i % 1000}`));
    const allowed = (await Promise.all(asked)).filter(Boolean);
    assert.equal(allowed.length, 10_000);
  });

  await t.test('check, peek, refund and reset return all fields', async () => {
    const first = await client.check('a b', { cost: 3, domain: 'log in' });
    const { allowed, granted, limit, remaining, rule, failedOpen } = first;
    assert.deepEqual([allowed, granted, limit, remaining, rule, failedOpen], [true, 3, 5, 2, null, false]);
    const second = await client.check('a b', { cost: 3, domain: 'log in' });
    assert.deepEqual([second.allowed, second.granted, second.rule], [false, 0, 'rule1']);
    assert.ok(Math.abs(second.retryAfterMs - 86_400_000 / 5) < 60_000);
    const part = await client.check('a b', { cost: 3, domain: 'log in', partial: true });
    assert.deepEqual([part.granted, part.remaining], [2, 0]);
    const waiting = await client.check('a b', { domain: 'log in', maxDelayMs: 2e7 });
    assert.ok(waiting.allowed && waiting.delayMs > 1e7);
    assert.equal(await client.refund('a b', 2, { domain: 'log in' }), true);
    assert.equal((await client.peek('a b', { domain: 'log in' })).balance, 1);
    assert.equal(await client.reset('a b', { domain: 'log in' }), true);
    assert.equal((await client.peek('a b', { domain: 'log in' })).remaining, 5);
    assert.equal((await client.check('x', { domain: 'free' })).limit, Infinity);
  });

  await t.test('a tag may contain any bytes except a newline', async () => {
    for (const tag of ['\0check', 'ends\r', Buffer.from([255, 0]), '', 'grün']) {
      const answers = await Promise.all(Array.from({ length: 11 }, () => client.allow(tag)));
      assert.deepEqual(answers, [...Array(10).fill(true), false], String(tag));
    }
  });

  await t.test('a tag that looks like HTTP or TLS is counted over TCP', async () => {
    for (const tag of ['\x16\x03\x01', 'GET / HTTP/1.1\r', 'GET / HTTP/1.1']) {
      for (const expected of [...Array(10).fill(true), false]) {
        const one = new Client({ port: daemon.port, ...LONG_TIMEOUT });
        assert.equal(await one.allow(tag), expected, JSON.stringify(tag));
        assert.equal(one.counts().failedOpen, 0);
        one.close();
      }
    }
  });

  await t.test('refund and reset need the token over TCP', async () => {
    const transport = { port: daemon.port, ...LONG_TIMEOUT };
    const [without, wrong, right] = [new Client(transport), new Client({ ...transport, token: 'x'.repeat(21) }), new Client({ ...transport, token: TOKEN })];
    assert.equal((await right.check('token', { cost: 10 })).allowed, true);
    for (const one of [without, wrong]) {
      const refused = { code: 'DTHROTTLE_ARGUMENT', message: /needs the daemon's Unix socket, or/ };
      await assert.rejects(one.reset('token'), refused);
      await assert.rejects(one.refund('token', 1), refused);
    }
    assert.equal(await right.refund('token', 2), true);
    assert.equal((await right.peek('token')).remaining, 2);
    assert.equal(await right.reset('token'), true);
    assert.equal((await right.peek('token')).remaining, 10);
    for (const one of [without, wrong, right]) one.close();
    assert.throws(() => new Client({ ...transport, token: 'a\0b' }), { code: 'DTHROTTLE_ARGUMENT' });
  });

  await t.test('invalid arguments are errors with a code', async () => {
    const code = (kind) => ({ name: 'DthrottleError', code: `DTHROTTLE_${kind}` });
    await assert.rejects(client.allow('a\nb'), code('ARGUMENT'));
    await assert.rejects(client.allow(/** @type {any} */ (5)), code('ARGUMENT'));
    await assert.rejects(client.check('a', { domain: 'none' }), code('DOMAIN'));
    await assert.rejects(client.check('a', { domain: 'a\0cost=0' }), code('ARGUMENT'));
    await assert.rejects(client.check('a', { cost: 11 }), code('COST'));
    await assert.rejects(client.check('a', { cost: -1 }), code('COST'));
    await assert.rejects(client.check('a', /** @type {any} */ ({ price: 1 })), code('ARGUMENT'));
    assert.throws(() => new Client(/** @type {any} */ ({ timeout: 5 })), code('ARGUMENT'));
    assert.throws(() => new Client({ path: '/x', port: 5 }), code('ARGUMENT'));
    assert.throws(() => new Client({ timeoutMs: 0 }), code('ARGUMENT'));
    const closed = new Client({ path: daemon.socket });
    closed.close();
    await assert.rejects(closed.allow('a'), code('CLOSED'));
  });

  await t.test('an idle client does not keep the process alive', () => {
    const script = `const { Client } = require(${JSON.stringify(CLIENT)});
      new Client({ path: ${JSON.stringify(daemon.socket)}, timeoutMs: 600000 }).allow('idle').then(console.log)`;
    const done = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', timeout: 60_000 });
    assert.deepEqual([done.status, done.stdout], [0, 'true\n'], done.stderr);
  });
});

test('the client fails open while the daemon is down, and reconnects', async (t) => {
  const daemon = await new Daemon('rate = "3 per day"').start();
  const client = new Client({ path: daemon.socket, ...LONG_TIMEOUT, backoffMs: 50, maxBackoffMs: 200 });
  t.after(() => daemon.end());
  t.after(() => client.close());
  const ask = async (count) => {
    const answers = [];
    for (let i = 0; i < count; i += 1) answers.push(await client.allow('x'));
    return answers;
  };
  assert.deepEqual(await ask(4), [true, true, true, false]);
  await daemon.kill();
  assert.ok((await ask(1000)).every(Boolean), 'checks must be allowed without a daemon');
  assert.ok((await client.check('x')).failedOpen);
  const { failedOpen, failures } = client.counts();
  assert.equal(failedOpen, 1001);
  assert.ok(failures < 20, 'most checks must not try to connect');
  await daemon.start();
  const start = performance.now();
  while (await client.allow('x')) {
    assert.ok(performance.now() - start < 30_000, 'the client must reconnect and find the bucket empty');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
});

test('an idle connection that the daemon closed does not count as a failure', async (t) => {
  const daemon = await new Daemon('rate = "3 per day"', 'max_connections = 1').start();
  const options = { path: daemon.socket, ...LONG_TIMEOUT, backoffMs: 60_000, maxBackoffMs: 60_000 };
  const [one, other] = [new Client(options), new Client(options)];
  t.after(() => daemon.end());
  t.after(() => [one, other].forEach((client) => client.close()));
  for (let i = 0; i < 3; i += 1) assert.equal(await one.allow('x'), true);
  assert.equal(await other.allow('x'), false, 'a new connection makes the daemon close the idle one');
  // Closes the other one. The event loop notices the first close before that.
  const socket = connect(daemon.socket).setEncoding('utf8');
  socket.write('\0stats\n');
  const [stats] = await once(socket, 'data');
  socket.destroy();
  assert.match(stats, /"connections_closed_idle":[12]\b/);
  assert.equal(await one.allow('x'), false, 'the bucket is still empty');
  assert.deepEqual(one.counts(), { answered: 4, failedOpen: 0, failures: 0 });
});

test('a late answer is not used for the next check', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'dthrottled-'));
  const path = join(dir, 'socket');
  const sockets = [];
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    // Answers on the second connection, after a late answer on the first.
    if (sockets.length === 2) {
      sockets[0].write('NO\n');
      socket.on('data', () => socket.write('OK\n'));
    }
  });
  await new Promise((resolve) => server.listen(path, () => resolve(undefined)));
  t.after(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
    rmSync(dir, { recursive: true });
  });
  const client = new Client({ path, timeoutMs: 100, backoffMs: 1, maxBackoffMs: 1 });
  const start = performance.now();
  assert.equal(await client.allow('late'), true);
  assert.ok(performance.now() - start < 15_000);
  assert.deepEqual(client.counts(), { answered: 0, failedOpen: 1, failures: 1 });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(await client.allow('next'), true);
  client.close();
});

test('an invalid answer counts as a failure and fails open', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'dthrottled-'));
  const path = join(dir, 'socket');
  let answer = '';
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => socket.end(answer, 'latin1'));
  });
  await new Promise((resolve) => server.listen(path, () => resolve(undefined)));
  t.after(() => {
    server.close();
    rmSync(dir, { recursive: true });
  });
  const options = { path, ...LONG_TIMEOUT, backoffMs: 60_000, maxBackoffMs: 60_000 };
  const invalidAnswers = ['HTTP/1.1 400 Bad Request\r\n\r\n', '-ERR unknown\r\n', 'OKAY\n', 'ERROR\n', '\xff\n', '\n'];
  const calls = [
    async (client) => {
      const { allowed, granted, failedOpen } = await client.check('x', { cost: 2 });
      return allowed && granted === 2 && failedOpen;
    },
    async (client) => (await client.peek('x')).failedOpen,
    (client) => client.allow('x'),
    async (client) => !(await client.reset('x')),
    async (client) => !(await client.refund('x', 1)),
  ];
  for (answer of invalidAnswers) {
    for (const call of calls) {
      const client = new Client(options);
      assert.ok(await call(client), answer);
      assert.deepEqual(client.counts(), { answered: 0, failedOpen: 1, failures: 1 }, answer);
      client.close();
    }
  }

  await t.test('an answer without a request closes the connection', async () => {
    answer = 'OK\nNO\n';
    const client = new Client(options);
    assert.equal(await client.allow('x'), true);
    assert.equal((await client.check('x')).failedOpen, true, 'the extra NO must not be used');
    assert.deepEqual(client.counts(), { answered: 1, failedOpen: 1, failures: 1 });
    client.close();
  });

  await t.test('unknown fields of an answer are ignored', async () => {
    answer = 'NO limit=x remaining=3 new=a=b word granted=1\n';
    const client = new Client(options);
    const { allowed, limit, remaining, granted } = await client.check('x');
    assert.deepEqual([allowed, limit, remaining, granted], [false, Infinity, 3, 1]);
    client.close();
  });
});
