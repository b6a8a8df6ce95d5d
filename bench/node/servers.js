// CPU time of a request to Express: `node servers.js <port of Redis> <its process>`. Prints for each
// kind of server the microseconds of all rounds, start by start.
//
// User and system time of all threads of the server; not of the client, and not of Redis. The servers
// run side by side and are asked in turns, one request at a time over a connection that is kept. They
// have a core for themselves, and the client another: otherwise they pay for each other's caches. What
// is called once a request is compiled late: the ratio falls until about the ten thousandth.
//
// What makes the same program slower at one time than at another, and what is done about it:
// - where a process has its memory, and how the engine's hash tables lie in it: some percent, for as
//   long as it lives. So all are started anew many times, those of one start with the same seed, which
//   says where the engine's heap lies, and with as much on the stack before they begin.
// - who had the core before: a server that follows itself finds its caches warm. So the order is drawn
//   anew in every round.
// - everybody else on the machine. So servers are compared round by round, and rounds are short.
// Two are bare: what lies between these is noise.
'use strict';

const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { readFileSync, readdirSync } = require('node:fs');
const net = require('node:net');
const readline = require('node:readline');

/** Those that are told apart by a few percent. */
const NEAR = ['bare', 'ours', 'again', 'fields'];
/** Those that are not near: fewer starts will do, the first ones. */
const FAR = ['erl', 'rlf'];
const STARTS = 16;
const FAR_STARTS = 4;
const ROUNDS = 32;
const REQUESTS = 250;
/** Until the engine has compiled what is called often. */
const WARM = 10_000;
/** Bytes by which the stack may lie elsewhere in another start. */
const SHIFT = 4096;

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n';

/** The cores that this process may use. */
function cores() {
  const allowed = /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return allowed.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

class Server {
  #child;
  #socket;
  #waiting = () => {};
  #answer = '';

  /**
   * @param {import('node:child_process').ChildProcess} child
   * @param {net.Socket} socket
   */
  constructor(child, socket) {
    this.#child = child;
    this.#socket = socket.setNoDelay().setEncoding('latin1');
    socket.on('data', (text) => {
      this.#answer += text;
      if (this.#answer.endsWith('hello')) this.#waiting();
    });
    socket.on('end', () => {
      throw new Error(`a server has closed the connection after: ${this.#answer}`);
    });
  }

  /**
   * @param {string} kind
   * @param {number} seed
   * @param {number} core
   * @param {string} redisPort
   */
  static async start(kind, seed, core, redisPort) {
    const flags = [`--hash-seed=${seed}`, `--random-seed=${seed}`];
    const words = ['--addr-no-randomize', process.execPath, ...flags, 'server.js', kind, redisPort];
    const env = { ...process.env, SHIFT: 'x'.repeat(((seed * 1237) % SHIFT) - kind.length + 16) };
    const child = spawn('taskset', ['-c', String(core), 'setarch', ...words], { cwd: __dirname, env, stdio: ['ignore', 'pipe', 'inherit'] });
    child.once('close', (code) => {
      if (code) throw new Error(`a server has ended with ${code}; setarch must be allowed to fix where memory lies`);
    });
    const [port] = await once(readline.createInterface({ input: child.stdout }), 'line');
    const socket = net.connect(Number(port), '127.0.0.1');
    await once(socket, 'connect');
    return new Server(child, socket);
  }

  /**
   * Makes requests, one after the other.
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

  /** The microseconds that all its threads have taken. */
  get cpu() {
    const folder = `/proc/${this.#child.pid}/task`;
    const taken = (id) => Number(readFileSync(`${folder}/${id}/schedstat`, 'utf8').split(' ')[0]);
    return readdirSync(folder).reduce((sum, id) => sum + taken(id), 0) / 1000;
  }

  async stop() {
    this.#socket.destroy();
    this.#child.kill();
    await once(this.#child, 'close');
  }
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
 * @param {number} seed
 * @param {number} core
 * @param {string} redisPort
 * @returns {Promise<Record<string, number[]>>}
 */
async function measure(kinds, seed, core, redisPort) {
  const servers = await Promise.all(kinds.map((kind) => Server.start(kind, seed, core, redisPort)));
  /** @type {Record<string, number[]>} */
  const times = Object.fromEntries(kinds.map((kind) => [kind, []]));
  for (const server of servers) await server.ask(WARM);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const i of shuffled([...servers.keys()])) {
      const before = servers[i].cpu;
      await servers[i].ask(REQUESTS);
      times[kinds[i]].push((servers[i].cpu - before) / REQUESTS);
    }
  }
  await Promise.all(servers.map((server) => server.stop()));
  return times;
}

async function main() {
  const [redisPort, redis] = process.argv.slice(2);
  const all = cores();
  for (const pid of [redis, String(process.pid)]) spawnSync('taskset', ['-acp', String(all[all.length - 1]), pid]);
  /** @type {Record<string, number[][]>} */
  const times = Object.fromEntries([...NEAR, ...FAR].map((kind) => [kind, []]));
  for (let start = 0; start < STARTS; start += 1) {
    const kinds = start < FAR_STARTS ? [...NEAR, ...FAR] : NEAR;
    const taken = await measure(kinds, start + 1, all[0], redisPort);
    for (const kind of kinds) times[kind].push(taken[kind]);
  }
  console.log(JSON.stringify(times));
}

main();
