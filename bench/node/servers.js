// CPU time of a request to Express: `node servers.js <port of Redis> <its process>`. Prints for each
// group, and for each start of it, the microseconds of all rounds by kind of application.
//
// User and system time of all threads of the server; not of the client, and not of Redis. The
// applications are asked in turns, one request at a time over a connection that is kept. The server has
// a core for itself, and the client another: otherwise they pay for each other's caches. What is called
// once a request is compiled late: the ratio falls until about the ten thousandth.
//
// What makes the same program slower at one time than at another, and what is done about it:
// - where a process has its memory and its compiled code: some percent, for as long as it lives. So all
//   applications are in one process, where they share both; and that is started anew several times.
// - who had the core before: one that follows itself finds its caches warm. So the order is drawn anew
//   in every round.
// - everybody else on the machine, who may slow a core by half, for about as long as some ten requests
//   take. So applications are compared round by round, and rounds are short.
// - garbage collection, which falls on whoever comes along. Rounds with much of it are left out
//   of the ratio (main.js), where what an application adds to it does not show; so there is a row
//   with all of it, too, which has far more noise.
// Two are bare: what lies between these is noise.
'use strict';

const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { readFileSync, readdirSync } = require('node:fs');
const net = require('node:net');
const readline = require('node:readline');

const SMALL = Boolean(process.env.BENCH_SMALL);

/** What is measured side by side: first what is told apart by a few percent, then what is not. */
const GROUPS = [
  { kinds: ['bare', 'bare_2', 'ours', 'fields'], starts: SMALL ? 2 : 6, rounds: SMALL ? 4 : 400 },
  { kinds: ['bare', 'bare_2', 'erl', 'rlf'], starts: 2, rounds: SMALL ? 4 : 100 },
];
const REQUESTS = 20;
/** Rounds until the engine has compiled what is called often, and how many requests each has. */
const WARM = SMALL ? 1 : 60;
const WARM_REQUESTS = SMALL ? 5 : 250;

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n';

/** The cores that this process may use. */
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
  #answer = '';

  /** @param {net.Socket} socket */
  constructor(socket) {
    this.#socket = socket.setNoDelay().setEncoding('latin1');
    socket.on('data', (text) => {
      this.#answer += text;
      if (this.#answer.endsWith('hello')) this.#waiting();
    });
    socket.on('end', () => {
      throw new Error(`the server has closed the connection after: ${this.#answer}`);
    });
  }

  /** @param {number} port */
  static async connect(port) {
    const socket = net.connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Client(socket);
  }

  /**
   * Makes the requests of a round, one after the other.
   * @param {number} requests
   */
  async ask(requests) {
    for (let i = 0; i < requests; i += 1) {
      this.#answer = '';
      await new Promise((resolve) => {
        this.#waiting = () => resolve(undefined);
        this.#socket.write(REQUEST);
      });
      if (!this.#answer.startsWith('HTTP/1.1 200 ')) throw new Error(`not the answer: ${this.#answer}`);
    }
  }

  close() {
    this.#socket.destroy();
  }
}

/**
 * The microseconds that all threads of a process have taken, when its main thread sleeps: until then
 * not all of its time is counted.
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
 * All in an order of chance.
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
 * The microseconds of a request in each round of one start, by kind.
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
  for (let round = 0; round < WARM; round += 1) for (const client of clients) await client.ask(WARM_REQUESTS);
  for (let round = 0; round < rounds; round += 1) {
    for (const i of shuffled([...kinds.keys()])) {
      const before = cpu(child.pid);
      await clients[i].ask(REQUESTS);
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
