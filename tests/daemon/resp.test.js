// RESP with ioredis.
'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');

const { Redis } = require('ioredis');

const { Daemon } = require('./daemons.js');

test('ioredis can use CL.THROTTLE', async (t) => {
  const daemon = await new Daemon('rate = "3 per day"', 'resp = "127.0.0.1:0"').start();
  const [host, port] = daemon.resp.split(':');
  const redis = new Redis(Number(port), host);
  t.after(() => daemon.end());
  t.after(() => redis.disconnect());

  assert.equal(await redis.ping(), 'PONG');
  const ask = (key, ...numbers) => redis.call('CL.THROTTLE', key, ...numbers);
  assert.deepEqual(await ask('k', 1, 1, 6000), [0, 2, 1, -1, 6000]);
  const second = await ask('k', 1, 1, 6000);
  const reset = second.pop();
  assert.deepEqual(second, [0, 2, 0, -1]);
  // Some seconds may have passed since the first call.
  assert.ok(reset > 11_970 && reset <= 12_000, reset);
  assert.deepEqual((await ask('k', 1, 1, 6000)).slice(0, 3), [1, 2, 0]);
  await assert.rejects(ask('k', 1, 0, 60), /count_per_period must be a whole number of at least 1, got 0/);
  const many = redis.pipeline();
  for (let i = 0; i < 500; i += 1) many.call('CL.THROTTLE', Buffer.from([0, 255, 10]), 99, 1, 3600);
  const answers = await many.exec();
  assert.equal(answers.filter(([error, answer]) => error === null && answer[0] === 0).length, 100);
});
