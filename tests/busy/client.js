// The same as client.py, with fetch.
'use strict';

const { BusyThrottle } = require('../../bindings-node');
const { ServiceBusyError, busyFetch } = require('../../bindings-node/busy');

const { url, rate, start, seconds, busy } = JSON.parse(process.argv[2]);
const counts = Object.fromEntries(
  ['wanted', 'good', 'busy', 'held', 'failed'].map((kind) => [kind, Array(seconds).fill(0)]),
);
const send = busy === null ? fetch : busyFetch({ throttle: new BusyThrottle(busy) });

async function once(second) {
  let kind = 'failed';
  try {
    const response = await send(url);
    await response.arrayBuffer();
    kind = response.status === 200 ? 'good' : 'busy';
  } catch (error) {
    if (error instanceof ServiceBusyError) kind = 'held';
  }
  counts[kind][second] += 1;
}

async function main() {
  const requests = [];
  for (let i = 0; i < Math.floor(seconds * rate); i += 1) {
    const due = start * 1000 + (i / rate) * 1000;
    const wait = due - Date.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    const second = Math.floor(i / rate);
    counts.wanted[second] += 1;
    requests.push(once(second));
  }
  await Promise.all(requests);
  console.log(JSON.stringify(counts));
}

main();
