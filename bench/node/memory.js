// Measures the memory of a million tags: `node --expose-gc memory.js ours|erl`. Prints bytes per tag.
'use strict';

const TAGS = process.env.BENCH_SMALL ? 10_000 : 1_000_000;

/** @type {Record<string, () => (tag: string) => unknown>} */
const kinds = {
  ours() {
    const { Throttle } = require('../../bindings-node');
    const throttle = new Throttle({ rate: '1/minute', burst: 10, table: { size: TAGS } });
    return (tag) => throttle.allow(tag);
  },
  erl() {
    const { MemoryStore } = require('express-rate-limit');
    const store = new MemoryStore();
    store.init({ windowMs: 3_600_000 });
    return (tag) => store.increment(tag);
  },
};

async function main() {
  const kind = process.argv[2];
  const call = kinds[kind]();
  const tag = (i) => `203.0.${i >> 8}.${i & 255}`;
  for (let i = 0; i < 1000; i += 1) await call('warm');
  globalThis.gc();
  const before = process.memoryUsage.rss();
  for (let i = 0; i < TAGS; i += 1) await call(tag(i));
  globalThis.gc();
  console.log((process.memoryUsage.rss() - before) / TAGS);
  process.exit();
}

main();
