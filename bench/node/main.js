// dthrottle for Node side by side with what users would pick instead: `make bench-node`. Prints a
// table and whether the targets are reached, and writes bench/out/node.json.
'use strict';

const { execFileSync, spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { mkdirSync, readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const net = require('node:net');
const readline = require('node:readline');

const ROOT = join(__dirname, '../..');
const SERVERS = ['bare', 'ours', 'erl', 'rlf'];
const ROUNDS = 9;
const SECONDS = 1;
/** Ticks in which the kernel counts CPU time. */
const TICK = 1 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** At least so much, or at most for express_cpu. */
const TARGETS = { erl_hot: 1.7, erl_1m: 5, rlf_hot: 6, rlf_1m: 7, rlf_redis: 100, check_100k: 1, memory: 6, express_cpu: 1.05 };

/** @param {number[]} numbers */
const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

/** @param {number} number */
const rounded = (number) => Math.round(number * 1000) / 1000;

/** Rivals are installed elsewhere. */
const environment = { ...process.env, NODE_PATH: join(ROOT, 'target/bench/node/node_modules') };

/** @param {string[]} words */
function node(...words) {
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: __dirname, env: environment, encoding: 'utf8' });
  if (status !== 0) throw new Error(`node ${words.join(' ')}: ${stderr}`);
  return JSON.parse(stdout);
}

/** Starts a Redis server that keeps nothing, and gives its port. */
async function startRedis() {
  const socket = net.createServer().listen(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = /** @type {net.AddressInfo} */ (socket.address());
  socket.close();
  const child = spawn('redis-server', ['--port', String(port), '--save', '', '--appendonly', 'no', '--bind', '127.0.0.1'], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const said of readline.createInterface({ input: child.stdout })) if (said.includes('eady to accept')) break;
  child.stdout.resume();
  return { port, stop: () => child.kill() };
}

/**
 * CPU seconds that a process has taken, of user and system.
 * @param {number | undefined} pid
 */
function cpu(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK;
}

/**
 * CPU microseconds of a request to a real Express server, in turns, each server against the bare one
 * of its round.
 * @param {number} redisPort
 */
async function express(redisPort) {
  const servers = await Promise.all(SERVERS.map(async (kind) => {
    const child = spawn(process.execPath, ['server.js', kind, String(redisPort)], { cwd: __dirname, env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
    const [port] = await once(readline.createInterface({ input: child.stdout }), 'line');
    return { kind, child, port, times: /** @type {number[]} */ ([]) };
  }));
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const { child, port, times } of servers) {
      const before = cpu(child.pid);
      const { stdout, stderr } = spawnSync('wrk', ['-t1', '-c16', `-d${SECONDS}s`, `http://127.0.0.1:${port}/`], { encoding: 'utf8' });
      const requests = Number(/(\d+) requests in/.exec(stdout)?.[1]);
      if (!requests || /Non-2xx/.test(stdout)) throw new Error(`wrk: ${stdout}${stderr}`);
      if (round > 0) times.push((1e6 * (cpu(child.pid) - before)) / requests);
    }
  }
  for (const { child } of servers) child.kill();
  const [bare, ...others] = servers;
  const ratios = others.map(({ kind, times }) => [kind, median(times.map((time, i) => time / bare.times[i]))]);
  return {
    us: Object.fromEntries(servers.map(({ kind, times }) => [kind, median(times)])),
    ratio: Object.fromEntries(ratios),
  };
}

async function main() {
  const redis = await startRedis();
  try {
    const calls = node('--expose-gc', 'calls.js', String(redis.port));
    const bytes = { ours: node('--expose-gc', 'memory.js', 'ours'), erl: node('--expose-gc', 'memory.js', 'erl') };
    const { us, ratio } = await express(redis.port);
    report(calls, bytes, us, ratio);
  } finally {
    redis.stop();
  }
}

/**
 * @param {Record<string, number>} calls
 * @param {Record<string, number>} bytes
 * @param {Record<string, number>} us
 * @param {Record<string, number>} ratio
 */
function report(calls, bytes, us, ratio) {
  /** @type {[keyof typeof TARGETS, string, number, number, string][]} */
  const rows = [
    ['erl_hot', 'allow, one tag: express-rate-limit in memory', calls.erlHot, calls.allowHot, 'ns'],
    ['rlf_hot', 'allow, one tag: rate-limiter-flexible in memory', calls.rlfHot, calls.allowHot, 'ns'],
    ['erl_1m', 'allow, a million tags: express-rate-limit', calls.erlMany, calls.allowMany, 'ns'],
    ['rlf_1m', 'allow, a million tags: rate-limiter-flexible', calls.rlfMany, calls.allowMany, 'ns'],
    ['rlf_redis', 'allow, one tag: rate-limiter-flexible, Redis', calls.redis, calls.allowHot, 'ns'],
    ['check_100k', 'check, 100,000 tags: express-rate-limit', calls.erlSome, calls.checkSome, 'ns'],
    ['memory', 'memory of a tag: express-rate-limit', bytes.erl, bytes.ours, 'B'],
  ];
  const ratios = {};
  console.log(`${''.padEnd(50)}${'theirs'.padStart(10)}${'ours'.padStart(10)}${'ratio'.padStart(9)}`);
  for (const [name, text, theirs, ours, unit] of rows) {
    ratios[name] = rounded(theirs / ours);
    line(text, [`${theirs.toFixed(0)} ${unit}`, `${ours.toFixed(0)} ${unit}`], ratios[name], `at least ${TARGETS[name]}`, ratios[name] >= TARGETS[name]);
  }
  ratios.express_cpu = rounded(ratio.ours);
  line('CPU of a request to Express, over bare', [`${us.bare.toFixed(1)} us`, `${us.ours.toFixed(1)} us`], ratios.express_cpu, `at most ${TARGETS.express_cpu}`, ratios.express_cpu <= TARGETS.express_cpu);
  line('  with express-rate-limit', [`${us.bare.toFixed(1)} us`, `${us.erl.toFixed(1)} us`], rounded(ratio.erl));
  line('  with rate-limiter-flexible and Redis', [`${us.bare.toFixed(1)} us`, `${us.rlf.toFixed(1)} us`], rounded(ratio.rlf));
  mkdirSync(join(ROOT, 'bench/out'), { recursive: true });
  const express_us = Object.fromEntries(Object.entries(us).map(([kind, time]) => [kind, rounded(time)]));
  const beside = { express_cpu_erl: rounded(ratio.erl), express_cpu_rlf_redis: rounded(ratio.rlf) };
  const ns = Object.fromEntries(Object.entries(calls).map(([name, time]) => [name, rounded(time)]));
  writeFileSync(join(ROOT, 'bench/out/node.json'), `${JSON.stringify({ ratios, targets: TARGETS, beside, ns, bytes, express_us }, null, 2)}\n`);
}

/**
 * @param {string} text
 * @param {[string, string]} figures
 * @param {number} ratio
 * @param {string} [target]
 * @param {boolean} [reached]
 */
function line(text, [theirs, ours], ratio, target, reached) {
  const end = target === undefined ? '' : `   ${target}: ${reached ? 'reached' : 'MISSED'}`;
  console.log(`${text.padEnd(50)}${theirs.padStart(10)}${ours.padStart(10)}${ratio.toFixed(2).padStart(9)}${end}`);
}

main();
