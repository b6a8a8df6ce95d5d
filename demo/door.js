// The questions of the demonstration, asked in JavaScript: door.js <package folder>.
'use strict';

const { resolve } = require('node:path');

const { ManualClock, Throttle } = require(resolve(process.argv[2] ?? ''));

const clock = new ManualClock();
const throttle = new Throttle({ rate: '5/s', burst: 8, clock });
let answers = '';
for (let second = 0; second < 3; second++) {
  for (let i = 0; i < 10; i++) {
    answers += throttle.allow('alice') ? '+' : '-';
  }
  answers += ' ';
  clock.advance(1000);
}
console.log(answers + throttle.check('alice').remaining);
