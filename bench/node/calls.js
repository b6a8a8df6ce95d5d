// Measures one call in a loop: dthrottle, the memory store of express-rate-limit, and
// rate-limiter-flexible in memory and with Redis. They run alternately. The figure is CPU time, which
// other processes disturb less, and the minimum of all rounds, because disturbances only add to it.
// All checks are admitted, because a refusal takes another code path.
//
// Each tag is a new string, as in requests: an address from a header, a key that a user sent, the
// address of a connection. This matters for limiters with a Map, because V8 computes the hash of a new
// string and compares its characters with the key. It does neither if the program uses the same string
// object again (a constant tag, or a client that keeps its connection). Both are measured: `new`
// creates a string for each check, and `kept` reuses one string per tag.
'use strict';

const { Throttle } = require('../../bindings-node');
const { MemoryStore } = require('express-rate-limit');
const { RateLimiterMemory, RateLimiterRedis } = require('rate-limiter-flexible');
const Redis = require('ioredis');

/** @typedef {(tags: string[]) => Promise<number>} Batch Returns how many checks were admitted. */
/** @typedef {{ batch: Batch, end: () => void }} Candidate */

/** Whether this is a short run, which only checks that the benchmark works. */
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
 * Returns a function that returns random tags, each as a new string.
 * @param {number} tags
 */
const fresh = (tags) => () => toTag(Math.floor(Math.random() * tags));

/**
 * Returns a function that returns random tags, always with the same string for a tag.
 * @param {number} tags
 */
function kept(tags) {
  const all = Array.from({ length: tags }, (_, i) => toTag(i));
  return () => all[Math.floor(Math.random() * tags)];
}

/**
 * Returns the nanoseconds of CPU time per call. Calls are in batches for two reasons: the strings are
 * created just before, so that they are in the cache, as in a request that was just read; and V8
 * optimizes functions that are called often, but not a single long loop.
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
  if (admitted !== calls) throw new Error(`only ${admitted} of ${calls} checks were admitted`);
  return (spent * 1000) / calls;
}

/** Other limiters, which return promises. */
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
    // The limiter has a timer for each tag, which keeps the process alive.
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
 * Returns the nanoseconds of all candidates, measured alternately.
 * @param {Candidate[]} all
 * @param {() => string} next
 * @param {number} calls The number of calls in a round.
 */
async function compare(all, next, calls) {
  const times = all.map(() => []);
  for (let i = 0; i <= ROUNDS; i += 1) {
    for (const [j, { batch }] of all.entries()) {
      const ns = await time(batch, next, calls);
      if (i > 0) times[j].push(ns); // the first round warms up
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
    // Wall-clock time, because waiting is what we measure. 64 calls at once, as in a busy server.
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
  // A million timers of rate-limiter-flexible would disturb the others, so it is measured last.
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
  process.exit(); // rate-limiter-flexible still has timers
}

main();
