// One call in a loop: dthrottle, express-rate-limit's memory store, rate-limiter-flexible in memory
// and over Redis. In CPU time, which others on the machine disturb less; in turns; the least of all
// rounds, since others only ever add to it. Every check is admitted: a refusal takes another path.
//
// Each tag is a new string, as requests bring them: an address out of a header, a key that a user
// sent, the address of a connection. That matters to those who keep a Map: the engine computes the
// hash of a string when it first needs it, and compares its letters with those of the key. Where the
// program asks with the same string again (a client without a proxy before it that keeps its
// connection, or a tag that is a constant), it does neither. Both are measured: `ratios` is with new
// strings, `kept` with one string for each tag, which is made and hashed once.
'use strict';

const { Throttle } = require('../../bindings-node');
const { MemoryStore } = require('express-rate-limit');
const { RateLimiterMemory, RateLimiterRedis } = require('rate-limiter-flexible');
const Redis = require('ioredis');

/** @typedef {(tags: string[]) => Promise<number>} Batch Gives how many were admitted. */
/** @typedef {{ batch: Batch, end: () => void }} Contender */

/** A little of everything, to see that it works: `make test-bench`. */
const SMALL = Boolean(process.env.BENCH_SMALL);
const ROUNDS = SMALL ? 1 : 5;
const BATCH = SMALL ? 1_000 : 10_000;
const WINDOW = 3_600_000;
const PLENTY = 1_000_000_000;

/** @param {number[]} numbers */
const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

const text = Buffer.alloc(16);

/** @param {number} i */
function toTag(i) {
  const length = text.write(`203.0.${i >> 8}.${i & 255}`, 'latin1');
  return text.latin1Slice(0, length);
}

/**
 * Tags in an order that no cache foresees, each a new string that nobody has asked about before.
 * @param {number} tags
 */
const fresh = (tags) => () => toTag(Math.floor(Math.random() * tags));

/**
 * The same, of strings that are kept.
 * @param {number} tags
 */
function kept(tags) {
  const all = Array.from({ length: tags }, (_, i) => toTag(i));
  return () => all[Math.floor(Math.random() * tags)];
}

/**
 * Nanoseconds of CPU time for each call of a round. In batches: the strings are made just before, so
 * that they are as near as those of a request that was just read; and the engine compiles what is
 * called often, where it leaves a single long loop half compiled.
 * @param {Batch} batch
 * @param {() => string} next
 * @param {number} calls
 */
async function time(batch, next, calls) {
  const tags = Array.from({ length: BATCH }, () => '');
  let admitted = 0;
  let spent = 0;
  for (let done = 0; done < calls; done += BATCH) {
    for (let i = 0; i < BATCH; i += 1) tags[i] = next();
    const start = process.cpuUsage();
    admitted += await batch(tags);
    const { user, system } = process.cpuUsage(start);
    spent += user + system;
  }
  if (admitted !== calls) throw new Error(`only ${admitted} of ${calls} were admitted`);
  return (spent * 1000) / calls;
}

/** A store or limiter as users get at its answer: by a promise. */
const competitors = {
  erl() {
    const store = new MemoryStore();
    store.init({ windowMs: WINDOW });
    const batch = async (tags) => {
      let admitted = 0;
      for (let i = 0; i < BATCH; i += 1) if ((await store.increment(tags[i])).totalHits < PLENTY) admitted += 1;
      return admitted;
    };
    return { batch, end: () => store.shutdown() };
  },
  rlf() {
    const limiter = new RateLimiterMemory({ points: PLENTY, duration: WINDOW / 1000 });
    const batch = async (tags) => {
      let admitted = 0;
      for (let i = 0; i < BATCH; i += 1) if ((await limiter.consume(tags[i])).remainingPoints > 0) admitted += 1;
      return admitted;
    };
    // Each tag has a timer, which keeps the process alive.
    return { batch, end() {} };
  },
};

/** @param {number} tags */
function ours(tags, method = 'allow') {
  const throttle = new Throttle({ rate: '1000000/s', burst: 100_000_000, table: { size: Math.max(100_000, tags) } });
  const batch = {
    async allow(tags_) {
      let admitted = 0;
      for (let i = 0; i < BATCH; i += 1) if (throttle.allow(tags_[i])) admitted += 1;
      return admitted;
    },
    async check(tags_) {
      let admitted = 0;
      for (let i = 0; i < BATCH; i += 1) if (throttle.check(tags_[i]).allowed) admitted += 1;
      return admitted;
    },
  }[method];
  return { batch, end: () => throttle.close() };
}

/**
 * Their nanoseconds and ours, taken in turns.
 * @param {Contender[]} all
 * @param {() => string} next
 * @param {number} calls Of a round.
 */
async function compare(all, next, calls) {
  const times = all.map(() => []);
  for (let i = 0; i <= ROUNDS; i += 1) {
    for (const [j, { batch }] of all.entries()) {
      const ns = await time(batch, next, calls);
      if (i > 0) times[j].push(ns); // the first warms up
    }
  }
  for (const { end } of all) end();
  return times.map((all_) => Math.min(...all_));
}

/** @param {number} port Of a Redis server. */
async function overRedis(port) {
  const redis = new Redis(port, '127.0.0.1');
  const limiter = new RateLimiterRedis({ storeClient: redis, points: PLENTY, duration: 3600 });
  const calls = SMALL ? 200 : 5_000;
  const times = [];
  for (let i = 0; i < ROUNDS; i += 1) {
    // By the wall: what waits is the point. 64 at once, as a busy server has them.
    const start = process.hrtime.bigint();
    let next = 0;
    await Promise.all(Array.from({ length: 64 }, async () => {
      while (next < calls) {
        next += 1;
        await limiter.consume('203.0.113.7');
      }
    }));
    times.push(Number(process.hrtime.bigint() - start) / calls);
  }
  redis.disconnect();
  return median(times);
}

/** @param {(tags: number) => () => string} strings */
async function inMemory(strings) {
  /** @param {number} full */
  const sized = (full) => (SMALL ? BATCH : full);
  const hot = strings(1);
  const [erlHot, rlfHot, allowHot] = await compare([competitors.erl(), competitors.rlf(), ours(1)], hot, sized(500_000));
  const some = strings(sized(100_000));
  const [erlSome, checkSome] = await compare([competitors.erl(), ours(100_000, 'check')], some, sized(300_000));
  const many = strings(sized(1_000_000));
  // rate-limiter-flexible has a timer for each tag: nobody else is measured beside a million of them.
  const [erlMany, allowMany] = await compare([competitors.erl(), ours(1_000_000)], many, sized(1_000_000));
  const [rlfMany] = await compare([competitors.rlf()], many, sized(1_000_000));
  return { erlHot, rlfHot, allowHot, erlSome, checkSome, erlMany, rlfMany, allowMany };
}

/** Prints figures: `node calls.js new <port of Redis>`, or `node calls.js kept`. */
async function main() {
  const [kind, port] = process.argv.slice(2);
  const figures = await inMemory(kind === 'kept' ? kept : fresh);
  if (kind !== 'kept') figures.redis = await overRedis(Number(port));
  console.log(JSON.stringify(figures));
  process.exit(); // timers of rate-limiter-flexible
}

main();
