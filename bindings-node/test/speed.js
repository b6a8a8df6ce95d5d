// Measures the hot calls: `node bindings-node/test/speed.js [package]`. Prints medians of nine runs in CPU time, which
// depends less on other programs. Every check is allowed, because refusals take another path.
'use strict';

const { resolve } = require('node:path');

const path = resolve(process.argv[2] ?? `${__dirname}/..`);
/** @type {typeof import('../index.js')} */
const { ManualClock, Throttle } = require(path);

const RUNS = 9;
const CALLS = 500_000;
const TAGS = Array.from({ length: 1000 }, (_, i) => `203.0.113.${i}`);
const BYTES = TAGS.map((tag) => Buffer.from(tag));

/**
 * @param {string} name
 * @param {(i: number) => boolean} call
 */
function measure(name, call) {
  const times = Array.from({ length: RUNS }, () => {
    let admitted = 0;
    const start = process.cpuUsage();
    for (let i = 0; i < CALLS; i += 1) if (call(i)) admitted += 1;
    const { user, system: kernel } = process.cpuUsage(start);
    if (admitted !== CALLS) throw new Error(`${name}: only ${admitted} of ${CALLS} were admitted`);
    return ((user + kernel) * 1000) / CALLS;
  });
  times.sort((a, b) => a - b);
  console.log(`${name.padEnd(28)} ${times[RUNS >> 1].toFixed(0).padStart(6)} ns`);
}

const rule = { rate: 1e9, burst: 1e9 };
const system = new Throttle(rule);
const manual = new Throttle({ ...rule, clock: new ManualClock() });

console.log(path);
measure('allow, one tag', () => system.allow('203.0.113.7'));
measure('allow, one tag, cost', () => system.allow('203.0.113.7', 1));
measure('allow', (i) => system.allow(TAGS[i % 1000]));
measure('allow, bytes', (i) => system.allow(BYTES[i % 1000]));
measure('allow, manual clock', (i) => manual.allow(TAGS[i % 1000]));
measure('check', (i) => system.check(TAGS[i % 1000]).allowed);
measure('check, options', (i) => system.check(TAGS[i % 1000], { cost: 1, maxDelayMs: 5 }).allowed);
