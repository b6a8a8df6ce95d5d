// The node of hammer.py in JavaScript: node hammer.js CONFIG.
'use strict';

const { spawn } = require('node:child_process');
const readline = require('node:readline');
const { Throttle } = require('../../bindings-node');

const TENTH = 100;
const never = new Int32Array(new SharedArrayBuffer(4));

function clock() {
  return performance.timeOrigin + performance.now();
}

// Blocks the main thread. The exchange has its own thread.
function wait(due) {
  let now = clock();
  while (now < due) {
    Atomics.wait(never, 0, 0, due - now);
    now = clock();
  }
  return now;
}

function run(throttle, start, rate, ms, tag) {
  let [tenth, asked, admitted] = [Math.floor(start / TENTH), 0, 0];
  const end = start + ms;
  for (let number = 0; ; number += 1) {
    const now = wait(Math.min(start + (number * 1000) / rate, end));
    while (tenth < Math.floor(Math.min(now, end) / TENTH)) {
      console.log(`${tenth} ${asked} ${admitted} ${throttle.peek(tag).balance}`);
      [tenth, asked, admitted] = [tenth + 1, 0, 0];
    }
    if (now >= end) break;
    asked += 1;
    admitted += Number(throttle.allow(tag));
  }
  console.log('done');
}

// Node cannot fork without starting a program, which inherits the descriptors that were not closed.
function fork() {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  child.unref();
  return child.pid;
}

const throttle = new Throttle(JSON.parse(process.argv[2] ?? ''));
throttle.allow('hello');
console.log('ready');
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const [word, ...rest] = line.split(' ');
  if (word === 'run') {
    const [start, rate, ms, tag] = rest;
    run(throttle, Number(start), Number(rate), Number(ms), tag);
  } else if (word === 'balance') {
    console.log(throttle.peek(rest[0] ?? '').balance);
  } else if (word === 'fork') {
    console.log(fork());
  } else {
    throw new Error(line);
  }
});
