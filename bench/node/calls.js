// One call in a loop: dthrottle, express-rate-limit's memory store, rate-limiter-flexible in memory
// and over Redis. In CPU time, which others on the machine disturb less; in turns; medians. Every
// check is admitted: a refusal takes another path.
'use strict';

const { Throttle } = require('../../bindings-node');
const { MemoryStore } = require('express-rate-limit');
const { RateLimiterMemory, RateLimiterRedis } = require('rate-limiter-flexible');
const Redis = require('ioredis');

const ROUNDS = 5;
const WINDOW = 3_600_000;
const PLENTY = 1_000_000_000;

/** @param {number[]} numbers */
const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

/**
 * Tags in an order that no cache foresees, each a new string, as requests bring them: never one that
 * has been asked about before.
 * @param {number} tags
 * @param {number} calls
 */
function stream(tags, calls) {
  const text = Buffer.alloc(16);
  return Array.from({ length: calls }, () => {
    const i = Math.floor(Math.random() * tags);
    const length = text.write(`203.0.${i >> 8}.${i & 255}`, 'latin1');
    return text.latin1Slice(0, length);
  });
}

/**
 * Nanoseconds of CPU time for each call of a round.
 * @param {(tags: string[]) => Promise<number>} round Gives how many were admitted.
 * @param {string[]} tags
 */
async function time(round, tags) {
  const start = process.cpuUsage();
  const admitted = await round(tags);
  const { user, system } = process.cpuUsage(start);
  if (admitted !== tags.length) throw new Error(`only ${admitted} of ${tags.length} were admitted`);
  return ((user + system) * 1000) / tags.length;
}

/** A store or limiter as users get at its answer: by a promise. */
const rivals = {
  erl() {
    const store = new MemoryStore();
    store.init({ windowMs: WINDOW });
    const round = async (tags) => {
      let admitted = 0;
      for (const tag of tags) if ((await store.increment(tag)).totalHits < PLENTY) admitted += 1;
      return admitted;
    };
    return { round, end: () => store.shutdown() };
  },
  rlf() {
    const limiter = new RateLimiterMemory({ points: PLENTY, duration: WINDOW / 1000 });
    const round = async (tags) => {
      let admitted = 0;
      for (const tag of tags) if ((await limiter.consume(tag)).remainingPoints > 0) admitted += 1;
      return admitted;
    };
    // Each tag has a timer, which keeps the process alive.
    return { round, end() {} };
  },
};

/** @param {number} tags */
function ours(tags, method = 'allow') {
  const throttle = new Throttle({ rate: '1000000/s', burst: 100_000_000, table: { size: Math.max(100_000, tags) } });
  const round = {
    async allow(stream_) {
      let admitted = 0;
      for (const tag of stream_) if (throttle.allow(tag)) admitted += 1;
      return admitted;
    },
    async check(stream_) {
      let admitted = 0;
      for (const tag of stream_) if (throttle.check(tag).allowed) admitted += 1;
      return admitted;
    },
  }[method];
  return { round, end: () => throttle.close() };
}

/**
 * Their nanoseconds and ours, taken in turns.
 * @param {{ round: (tags: string[]) => Promise<number>, end: () => void }[]} all
 * @param {() => string[]} tags
 */
async function compare(all, tags) {
  const times = all.map(() => []);
  for (let i = 0; i <= ROUNDS; i += 1) {
    for (const [j, { round }] of all.entries()) {
      const ns = await time(round, tags());
      if (i > 0) times[j].push(ns); // the first warms up
    }
  }
  for (const { end } of all) end();
  return times.map(median);
}

/** @param {number} port Of a Redis server. */
async function overRedis(port) {
  const redis = new Redis(port, '127.0.0.1');
  const limiter = new RateLimiterRedis({ storeClient: redis, points: PLENTY, duration: 3600 });
  const tags = stream(1, 5_000);
  const times = [];
  for (let i = 0; i < ROUNDS; i += 1) {
    // By the wall: what waits is the point. 64 at once, as a busy server has them.
    const start = process.hrtime.bigint();
    let next = 0;
    await Promise.all(Array.from({ length: 64 }, async () => {
      while (next < tags.length) {
        next += 1;
        await limiter.consume(tags[0]);
      }
    }));
    times.push(Number(process.hrtime.bigint() - start) / tags.length);
  }
  redis.disconnect();
  return median(times);
}

async function main() {
  const hot = () => stream(1, 500_000);
  const [erlHot, rlfHot, allowHot] = await compare([rivals.erl(), rivals.rlf(), ours(1)], hot);
  const some = () => stream(100_000, 300_000);
  const [erlSome, checkSome] = await compare([rivals.erl(), ours(100_000, 'check')], some);
  const many = () => stream(1_000_000, 1_000_000);
  // rate-limiter-flexible has a timer for each tag: nobody else is measured beside a million of them.
  const [erlMany, allowMany] = await compare([rivals.erl(), ours(1_000_000)], many);
  const [rlfMany] = await compare([rivals.rlf()], many);
  const redis = await overRedis(Number(process.argv[2]));
  console.log(JSON.stringify({ erlHot, rlfHot, allowHot, erlSome, checkSome, erlMany, rlfMany, allowMany, redis }));
  process.exit(); // timers of rate-limiter-flexible
}

main();
