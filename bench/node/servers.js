// Measures the CPU time of a request to Express: `node servers.js <port of Redis> <pid of Redis>`. Prints
// the microseconds of all rounds by kind of application, for each group and each start.
//
// The figure is the user and system time of all threads of the server, without the client and Redis.
// Requests go to the applications alternately, one at a time, over kept connections. The server and the
// client run on different cores, so that they do not evict each other's caches. V8 optimizes the code of
// a request late, so the ratio falls until about request 10,000.
//
// Causes of noise, and what is done about them:
// - The addresses of memory and compiled code make a process faster or slower by some percent. All
//   applications are in one process, and this process is restarted several times.
// - An application that runs twice in a row has warm caches. The order is random in every round.
// - Other processes may slow a core by half for the duration of about ten requests. Applications are
//   compared within a round, and rounds are short.
// - Garbage collection happens during any request. The ratio ignores rounds with much of it (main.js),
//   and with them the garbage that an application causes. So one row includes all rounds; it is noisy.
// Two applications are bare. Their difference is noise.
'use strict';

const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { readFileSync, readdirSync } = require('node:fs');
const net = require('node:net');
const readline = require('node:readline');

const SMALL = Boolean(process.env.BENCH_SMALL);

/** The groups of applications: the first differ by a few percent, the second by more. */
const GROUPS = [
  { kinds: ['bare', 'bare_2', 'ours', 'fields'], starts: SMALL ? 2 : 6, rounds: SMALL ? 4 : 400 },
  { kinds: ['bare', 'bare_2', 'erl', 'rlf'], starts: 2, rounds: SMALL ? 4 : 100 },
];
const REQUESTS = 20;
/** The number of warm-up rounds, and of requests in each, until V8 has optimized the code. */
const WARM = SMALL ? 1 : 60;
const WARM_REQUESTS = SMALL ? 5 : 250;

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n';

/** Returns the cores that this process may use. */
function cores() {
  const allowed = /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return allowed.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

/** A connection to one of the applications. */
class Client {
  #socket;
  #waiting = () => {};
  #response = '';

  /** @param {net.Socket} socket */
  constructor(socket) {
    this.#socket = socket.setNoDelay().setEncoding('latin1');
    socket.on('data', (text) => {
      this.#response += text;
      if (this.#response.endsWith('hello')) this.#waiting();
    });
    socket.on('end', () => {
      throw new Error(`the server has closed the connection after: ${this.#response}`);
    });
  }

  /** @param {number} port */
  static async connect(port) {
    const socket = net.connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Client(socket);
  }

  /**
   * Sends the requests of a round, one after another.
   * @param {number} requests
   */
  async request(requests) {
    for (let i = 0; i < requests; i += 1) {
      this.#response = '';
      await new Promise((resolve) => {
        this.#waiting = () => resolve(undefined);
        this.#socket.write(REQUEST);
      });
      if (!this.#response.startsWith('HTTP/1.1 200 ')) throw new Error(`unexpected response: ${this.#response}`);
    }
  }

  close() {
    this.#socket.destroy();
  }
}

/**
 * Returns the CPU microseconds of all threads of a process. Waits until its main thread sleeps, because
 * the kernel updates the time then.
 * @param {number | undefined} pid
 */
function cpu(pid) {
  for (let state = ''; state !== 'S'; ) {
    state = / (\w) [^)]*$/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1] ?? '';
    if (state === 'Z' || state === 'X') throw new Error('the server has ended');
  }
  const folder = `/proc/${pid}/task`;
  const taken = (id) => Number(readFileSync(`${folder}/${id}/schedstat`, 'utf8').split(' ')[0]);
  return readdirSync(folder).reduce((sum, id) => sum + taken(id), 0) / 1000;
}

/**
 * Returns the elements in random order.
 * @template T
 * @param {T[]} all
 */
function shuffled(all) {
  const drawn = [...all];
  for (let i = drawn.length - 1; i > 0; i -= 1) {
    const j = Math.floor(Math.random() * (i + 1));
    [drawn[i], drawn[j]] = [drawn[j], drawn[i]];
  }
  return drawn;
}

/**
 * Returns the microseconds per request of each round of one start, by kind.
 * @param {string[]} kinds
 * @param {number} rounds
 * @param {number} core
 * @param {string} redisPort
 * @returns {Promise<Record<string, number[]>>}
 */
async function measure(kinds, rounds, core, redisPort) {
  const words = ['-c', String(core), process.execPath, 'server.js', redisPort, ...kinds];
  const child = spawn('taskset', words, { cwd: __dirname, stdio: ['ignore', 'pipe', 'inherit'] });
  const [ports] = await once(readline.createInterface({ input: child.stdout }), 'line');
  const clients = await Promise.all(JSON.parse(ports).map((port) => Client.connect(port)));
  /** @type {number[][]} */
  const times = kinds.map(() => []);
  for (let round = 0; round < WARM; round += 1) for (const client of clients) await client.request(WARM_REQUESTS);
  for (let round = 0; round < rounds; round += 1) {
    for (const i of shuffled([...kinds.keys()])) {
      const before = cpu(child.pid);
      await clients[i].request(REQUESTS);
      times[i].push((cpu(child.pid) - before) / REQUESTS);
    }
  }
  for (const client of clients) client.close();
  child.kill();
  await once(child, 'close');
  return Object.fromEntries(kinds.map((kind, i) => [kind, times[i]]));
}

async function main() {
  const [redisPort, redis] = process.argv.slice(2);
  const all = cores();
  for (const pid of [redis, String(process.pid)]) spawnSync('taskset', ['-acp', String(all[all.length - 1]), pid]);
  /** @type {Record<string, number[]>[][]} */
  const groups = [];
  for (const { kinds, starts, rounds } of GROUPS) {
    const taken = [];
    for (let start = 0; start < starts; start += 1) taken.push(await measure(kinds, rounds, all[0], redisPort));
    groups.push(taken);
  }
  console.log(JSON.stringify(groups));
}

main();
