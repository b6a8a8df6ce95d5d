// CPU time of a request to Express: `node servers.js <port of Redis> <its process>`. Prints for each
// kind of server the microseconds of all rounds.
//
// User and system time of all threads of the server; not of the client, and not of Redis. The servers
// run side by side and are asked in turns, one request at a time over a connection that is kept. How
// the engine compiled a program, and where a process has its memory, make it faster or slower by some
// percent for as long as it lives, so all servers are started anew many times. They have a core for
// themselves, and the client another: otherwise they pay for each other's caches. Two are bare: what
// lies between these is noise. What is called once a request is compiled late: the ratio falls until
// about the ten thousandth.
'use strict';

const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { readFileSync, readdirSync } = require('node:fs');
const net = require('node:net');
const readline = require('node:readline');

const KINDS = ['bare', 'ours', 'again', 'erl', 'rlf'];
const STARTS = 16;
const ROUNDS = 4;
const REQUESTS = 1000;
/** Until the engine has compiled what is called often. */
const WARM = 10_000;

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
   * @param {number} core
   * @param {string} redisPort
   */
  static async start(kind, core, redisPort) {
    const words = ['-c', String(core), process.execPath, 'server.js', kind, redisPort];
    const child = spawn('taskset', words, { cwd: __dirname, stdio: ['ignore', 'pipe', 'inherit'] });
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
 * @param {Record<string, number[]>} times
 * @param {number} core
 * @param {string} redisPort
 */
async function measure(times, core, redisPort) {
  const kinds = Object.keys(times);
  const servers = await Promise.all(kinds.map((kind) => Server.start(kind, core, redisPort)));
  for (const server of servers) await server.ask(WARM);
  for (let round = 0; round < ROUNDS; round += 1) {
    // Every other goes backwards, so that nobody always follows the same one.
    const order = servers.map((_, i) => (round % 2 ? servers.length - 1 - i : i));
    for (const i of order) {
      const before = servers[i].cpu;
      await servers[i].ask(REQUESTS);
      times[kinds[i]].push((servers[i].cpu - before) / REQUESTS);
    }
  }
  await Promise.all(servers.map((server) => server.stop()));
}

async function main() {
  const [redisPort, redis] = process.argv.slice(2);
  const all = cores();
  for (const pid of [redis, String(process.pid)]) spawnSync('taskset', ['-acp', String(all[all.length - 1]), pid]);
  /** @type {Record<string, number[]>} */
  const times = Object.fromEntries(KINDS.map((kind) => [kind, []]));
  for (let start = 0; start < STARTS; start += 1) await measure(times, all[0], redisPort);
  console.log(JSON.stringify(times));
}

main();
