// Like client.py, with fetch.
'use strict';

const { BusyThrottle } = require('../../bindings-node');
const { ServiceBusyError, busyFetch } = require('../../bindings-node/busy');

const LATE_MS = 300;

const { url, rate, start, seconds, busy } = JSON.parse(process.argv[2]);
const counts = Object.fromEntries(
  ['wanted', 'good', 'busy', 'not_sent', 'failed'].map((kind) => [kind, Array(seconds).fill(0)]),
);
const send = busy === null ? fetch : busyFetch({ throttle: new BusyThrottle(busy) });

async function once(second) {
  let kind = 'failed';
  try {
    const response = await send(url);
    await response.arrayBuffer();
    kind = response.status === 200 ? 'good' : 'busy';
  } catch (error) {
    if (error instanceof ServiceBusyError) kind = 'not_sent';
  }
  counts[kind][second] += 1;
}

async function main() {
  const requests = [];
  for (let i = 0; i < Math.floor(seconds * rate); i += 1) {
    const lateMs = Date.now() - start * 1000 - (i / rate) * 1000;
    if (lateMs > LATE_MS) continue;
    if (lateMs < 0) await new Promise((resolve) => setTimeout(resolve, -lateMs));
    const second = Math.floor(Date.now() / 1000 - start);
    if (second < 0 || second >= seconds) continue;
    counts.wanted[second] += 1;
    requests.push(once(second));
  }
  await Promise.all(requests);
  console.log(JSON.stringify(counts));
}

main();
