// Runs daemons for tests, each with its own folder, table and ports.
'use strict';

const { spawn } = require('node:child_process');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { once } = require('node:events');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { createInterface } = require('node:readline');

const BINARY = join(__dirname, '../../target/debug/dthrottled');
const TOKEN = 'correct-horse-battery';

class Daemon {
  constructor(rules, keys = '') {
    this.dir = mkdtempSync(join(tmpdir(), 'dthrottled-'));
    this.socket = join(this.dir, 'socket');
    this.config = join(this.dir, 'dthrottle.toml');
    const table = `table = { name = "daemon-test", dir = "${this.dir}" }`;
    const daemon = `[daemon]\nlisten = ["${this.socket}", "127.0.0.1:0"]\nhttp = "127.0.0.1:0"\ntoken = "${TOKEN}"\n`;
    this.text = `${table}\n${rules}\n${daemon}`;
    this.writeKeys(keys);
  }

  /** Writes other keys for the next start. */
  writeKeys(keys) {
    writeFileSync(this.config, `${this.text}${keys}\n`);
  }

  async start() {
    this.process = spawn(BINARY, ['--config', this.config], { stdio: ['ignore', 'ignore', 'pipe'] });
    let addresses = null;
    for await (const line of createInterface({ input: this.process.stderr })) {
      addresses = /lines on (\S+) and \S+:(\d+); http on (\S+); resp on (\S+); smockron on (\S+);/.exec(line);
      if (addresses) break;
    }
    if (!addresses) throw new Error('the daemon ended before it was ready');
    this.process.stderr.resume();
    this.port = Number(addresses[2]);
    [this.http, this.resp, this.smockron] = addresses.slice(3);
    return this;
  }

  async kill() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.kill('SIGKILL');
    await once(this.process, 'exit');
  }

  async end() {
    await this.kill();
    rmSync(this.dir, { recursive: true });
  }
}

module.exports = { Daemon, TOKEN };
