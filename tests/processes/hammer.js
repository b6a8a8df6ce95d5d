// The same as hammer.py: node hammer.js FOLDER TAGS ASKS.
'use strict';

const readline = require('node:readline');
const { Throttle } = require('../../bindings-node');

const [dir = '', tags = '0', asks = '0'] = process.argv.slice(2);

const throttle = new Throttle({
  rate: '1 per 100 years',
  burst: 1000,
  table: { name: 'hammer', dir, size: 1000 },
});
console.log('ready');
readline.createInterface({ input: process.stdin }).on('line', (round) => {
  const passed = Array(Number(tags)).fill(0);
  for (let ask = 0; ask < Number(asks); ask += 1) {
    for (let tag = 0; tag < passed.length; tag += 1) {
      const name = `${round} ${tag}`;
      const allowed = ask % 2 ? throttle.allow(name) : throttle.check(name).allowed;
      passed[tag] += Number(allowed);
    }
  }
  console.log(passed.join(' '));
});
