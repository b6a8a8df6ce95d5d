// Like node.py, with fetch.
'use strict';

const readline = require('node:readline');

const { BusyThrottle, ServiceBusyError, busyFetch } = require('../../bindings-node/busy/index.js');

const task = JSON.parse(process.argv[2]);
const throttle = new BusyThrottle(task.busy);
throttle.start();
const fetch = busyFetch({ throttle });

/** @param {string} url */
async function send(url) {
  try {
    const response = await fetch(url);
    await response.text();
    return response.status;
  } catch (error) {
    if (error instanceof ServiceBusyError) return 0;
    throw error;
  }
}

/**
 * @param {string} word
 * @param {string} url
 */
async function answer(word, url) {
  if (word === 'send') return send(url);
  if (word === 'limit') {
    const limit = throttle.limit(new URL(url).host);
    return limit === Infinity ? null : limit;
  }
  const { peers, remoteBusy, busy } = throttle.stats();
  return { peers, remote_busy: remoteBusy, busy };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [word, url] = JSON.parse(line);
    console.log(JSON.stringify(await answer(word, url)));
  }
  process.exit(0);
}

main();
