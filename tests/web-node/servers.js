// Starts real servers, each as an application in a new folder.
'use strict';

const { spawn } = require('node:child_process');
const { randomBytes } = require('node:crypto');
const dgram = require('node:dgram');
const { once } = require('node:events');
const { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const readline = require('node:readline');

const ROOT = join(__dirname, '../..');
const OTHERS = ['express', 'express4', 'fastify', 'koa', 'hono', '@hono'];

/** @typedef {{ port: number, stop: () => Promise<void> }} Server */

/** The applications of one test, in new folders. */
class TestServers {
  #root = mkdtempSync(join(tmpdir(), 'dthrottle-web-node-'));
  #names = /** @type {string[]} */ ([]);
  #servers = /** @type {Server[]} */ ([]);

  /** Makes a new folder with the application. */
  folder() {
    const name = `web${process.pid}-${randomBytes(4).toString('hex')}`;
    const folder = join(this.#root, name);
    this.#names.push(name);
    mkdirSync(join(folder, 'node_modules'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "name": "web" }');
    copyFileSync(join(__dirname, 'app.js'), join(folder, 'app.js'));
    copyFileSync(join(ROOT, 'tests/web/node_app.py'), join(folder, 'node_app.py'));
    symlinkSync(join(ROOT, 'bindings-node'), join(folder, 'node_modules/dthrottle'), 'dir');
    for (const other of OTHERS) symlinkSync(join(ROOT, 'node_modules', other), join(folder, 'node_modules', other), 'dir');
    return folder;
  }

  /** The files of the tables of its applications. */
  tables() {
    const starts = this.#names.map((name) => `dthrottle-${process.getuid?.()}-${name}-`);
    const isOurs = (/** @type {string} */ file) => starts.some((start) => file.startsWith(start));
    const dirs = ['/run/dthrottle', '/dev/shm'].filter((dir) => existsSync(dir));
    return dirs.flatMap((dir) => readdirSync(dir).filter(isOurs).map((file) => join(dir, file)));
  }

  /**
   * Starts an application with workers of node:cluster.
   * @param {string} folder
   * @param {object} options The options of its middleware.
   * @param {{ framework?: string, workers?: number, warning?: RegExp }} [kind] With the only warning that it may emit.
   * @returns {Promise<Server>}
   */
  async node(folder, options, { framework = 'express', workers = 4, warning = /^$/ } = {}) {
    const child = spawn(process.execPath, ['--trace-warnings', join(folder, 'app.js')], {
      cwd: '/',
      env: { ...process.env, FRAMEWORK: framework, OPTIONS: JSON.stringify(options), PORT: '0', WORKERS: String(workers) },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text) => (output += text));
    const lines = readline.createInterface({ input: child.stdout });
    const ended = once(child, 'exit').then(() => {
      throw new Error(`${framework} ended: ${output}`);
    });
    ended.catch(() => {});
    const [port] = await Promise.race([once(lines, 'line'), ended]);
    return this.#add(Number(port), async () => {
      const exit = once(child, 'exit');
      child.stdin.end();
      await exit;
      // A correctly configured server emits no warnings.
      if (!warning.test(output)) throw new Error(`${framework} wrote: ${output}`);
    });
  }

  /**
   * Starts an application in Python with gunicorn and four workers.
   * @param {string} folder
   * @param {object} options
   * @returns {Promise<Server>}
   */
  async gunicorn(folder, options) {
    const port = await freePort();
    const flags = ['--workers', '4', '--bind', `127.0.0.1:${port}`, '--log-level', 'warning', 'node_app:application'];
    const child = spawn(join(ROOT, '.venv/bin/gunicorn'), flags, {
      cwd: folder,
      env: { ...process.env, OPTIONS: JSON.stringify(options), PYTHONDONTWRITEBYTECODE: '1' },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const seen = new Set();
    for (const end = Date.now() + 60_000; seen.size < 4; ) {
      if (Date.now() > end || child.exitCode !== null) throw new Error(`gunicorn: ${seen.size} workers answer`);
      const answers = await Promise.allSettled(Array.from({ length: 16 }, () => request(port, '/')));
      for (const answer of answers) if (answer.status === 'fulfilled') seen.add(answer.value.process);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return this.#add(port, async () => {
      const exit = once(child, 'exit');
      child.kill('SIGTERM');
      await exit;
    });
  }

  /**
   * @param {number} port
   * @param {() => Promise<void>} stop
   */
  #add(port, stop) {
    let stopped = false;
    const server = {
      port,
      async stop() {
        if (stopped) return;
        stopped = true;
        await stop();
      },
    };
    this.#servers.push(server);
    return server;
  }

  /** Stops all servers and removes their files. */
  async end() {
    try {
      for (const server of this.#servers) await server.stop();
    } finally {
      for (const table of this.tables()) unlinkSync(table);
      rmSync(this.#root, { recursive: true });
    }
  }
}

/** A port that is free. */
async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {net.AddressInfo} */ (server.address());
  server.close();
  return port;
}

/** The configurations of two nodes that are peers of each other. */
async function twoNodes() {
  const sockets = [dgram.createSocket('udp4'), dgram.createSocket('udp4')];
  const ports = await Promise.all(sockets.map(async (socket) => {
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return socket.address().port;
  }));
  sockets.forEach((socket) => socket.close());
  return [ports, [...ports].reverse()].map(([mine, other]) => ({
    name: 'web',
    withoutSecret: true,
    listen: `127.0.0.1:${mine}`,
    peers: [`127.0.0.1:${other}`],
  }));
}

/**
 * Makes one request.
 * @param {number} port
 * @param {string} path
 * @param {{ client?: string, agent?: http.Agent | false }} [options]
 * @returns {Promise<{ status: number, process: string, headers: http.IncomingHttpHeaders }>}
 */
function request(port, path, { client = 'client', agent = false } = {}) {
  return new Promise((resolve, reject) => {
    const sent = http.get({ host: '127.0.0.1', port, path, agent, headers: { 'X-Client': client } }, (response) => {
      response.resume().on('error', reject).on('end', () => {
        const { headers } = response;
        resolve({ status: Number(response.statusCode), process: String(headers['x-process']), headers });
      });
    });
    sent.on('error', reject);
  });
}

module.exports = { TestServers, request, freePort, twoNodes };
