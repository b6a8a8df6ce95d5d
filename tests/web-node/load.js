// Sends load from several clients at once, and measures the responses.
'use strict';

const { Agent } = require('node:http');
const { setTimeout: sleep } = require('node:timers/promises');

const { request } = require('./servers.js');

const CLIENTS = 8;
const PAUSE_MS = 60;

class LoadResult {
  /** @type {Record<number, number>} */
  statuses = {};
  /** @type {Set<string>} */
  processes = new Set();
  /** @type {number[]} Milliseconds, in their order. */
  allowedAt = [];
  /** The time of the first refusal, when the bucket was empty. */
  emptyAt = Infinity;

  /** @param {{ status: number, process: string }} answer */
  add({ status, process: pid }) {
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
    const now = performance.now();
    if (status === 200) {
      this.allowedAt.push(now);
      this.processes.add(pid);
    } else if (status === 429) {
      this.emptyAt = Math.min(this.emptyAt, now);
    }
  }

  get count() {
    return Object.values(this.statuses).reduce((sum, count) => sum + count, 0);
  }
}

/**
 * Sends a number of requests, CLIENTS of them at once.
 * @param {number} port
 * @param {number} count
 * @param {string} [client]
 * @param {string} [path]
 */
async function burst(port, count, client, path = '/') {
  const results = new LoadResult();
  let left = count;
  await Promise.all(Array.from({ length: CLIENTS }, async () => {
    while (left > 0) {
      left -= 1;
      results.add(await request(port, path, { client }));
    }
  }));
  return results;
}

/**
 * Sends about a hundred requests per second for some time.
 * @param {number[]} ports The ports of the servers.
 * @param {number} seconds
 * @param {string} [client]
 * @param {string} [path]
 */
async function load(ports, seconds, client, path = '/') {
  const results = ports.map(() => new LoadResult());
  const agent = new Agent({ keepAlive: true });
  const end = performance.now() + 1000 * seconds;
  await Promise.all(ports.flatMap((port, i) =>
    Array.from({ length: CLIENTS }, async (_, number) => {
      await sleep((PAUSE_MS * number) / CLIENTS);
      while (performance.now() < end) {
        const begin = performance.now();
        results[i].add(await request(port, path, { client, agent }));
        await sleep(Math.max(1, PAUSE_MS - (performance.now() - begin)));
      }
    }),
  ));
  agent.destroy();
  return results;
}

/**
 * The number of requests that several servers allowed, and the number that one bucket would have allowed.
 * @param {LoadResult[]} results
 * @param {number} rate
 * @param {number} burstSize
 */
function compareWithBucket(results, rate, burstSize) {
  const times = results.flatMap(({ allowedAt }) => allowedAt).sort((a, b) => a - b);
  const seconds = (times[times.length - 1] - times[0]) / 1000;
  return { passed: times.length, bucket: burstSize + rate * seconds };
}

module.exports = { compareWithBucket, burst, load };
