// Like hammer.py: node hammer.js FOLDER TAGS CHECKS.
'use strict';

const readline = require('node:readline');
const { Throttle } = require('../../bindings-node');

const [dir = '', tags = '0', checks = '0'] = process.argv.slice(2);

const throttle = new Throttle({
  rate: '1 per 100 years',
  burst: 1000,
  table: { name: 'hammer', dir, size: 1000 },
});
console.log('ready');
readline.createInterface({ input: process.stdin }).on('line', (round) => {
  const passed = Array(Number(tags)).fill(0);
  for (let check = 0; check < Number(checks); check += 1) {
    for (let tag = 0; tag < passed.length; tag += 1) {
      const name = `${round} ${tag}`;
      const allowed = check % 2 ? throttle.allow(name) : throttle.check(name).allowed;
      passed[tag] += Number(allowed);
    }
  }
  console.log(passed.join(' '));
});
