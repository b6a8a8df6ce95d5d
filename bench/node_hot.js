'use strict';

// Prints the nanoseconds of one allow() for one tag, the median of several rounds.

const { Throttle } = require('../bindings-node');

const ROUNDS = 7;
const CALLS = process.env.BENCH_SMALL ? 10_000 : 1_000_000;

const throttle = new Throttle({ rate: '1000000/s', burst: 100_000_000 });

function round() {
  const start = process.hrtime.bigint();
  let admitted = 0;
  for (let i = 0; i < CALLS; i += 1) {
    if (throttle.allow('203.0.113.77')) admitted += 1;
  }
  const ns = Number(process.hrtime.bigint() - start) / CALLS;
  if (admitted !== CALLS) throw new Error(`only ${admitted} of ${CALLS} checks were admitted`);
  return ns;
}

round();
const times = Array.from({ length: ROUNDS }, round).sort((a, b) => a - b);
console.log(times[Math.floor(ROUNDS / 2)].toFixed(2));
