// Compares dthrottle for Node with express-rate-limit and rate-limiter-flexible: `make bench-node`.
// Prints a table and whether the targets are reached, and writes bench/out/node.json.
'use strict';

const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const net = require('node:net');
const readline = require('node:readline');

const ROOT = join(__dirname, '../..');

/** The minimum of each ratio; for express_cpu, the maximum. */
const TARGETS = { erl_hot: 1.7, erl_1m: 5, rlf_hot: 6, rlf_1m: 7, rlf_redis: 100, check_100k: 1, memory: 6, express_cpu: 1.09 };

/** @param {number} number */
const rounded = (number) => Math.round(number * 1000) / 1000;

/** The other limiters are installed in target/bench/node. */
const environment = { ...process.env, NODE_PATH: join(ROOT, 'target/bench/node/node_modules') };

/** @param {string[]} words */
function node(...words) {
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: __dirname, env: environment, encoding: 'utf8' });
  if (status !== 0) throw new Error(`node ${words.join(' ')}: ${stderr}`);
  return JSON.parse(stdout);
}

/** Starts a Redis server without persistence. */
async function startRedis() {
  const socket = net.createServer().listen(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = /** @type {net.AddressInfo} */ (socket.address());
  socket.close();
  const flags = ['--port', String(port), '--save', '', '--appendonly', 'no', '--bind', '127.0.0.1'];
  const child = spawn('redis-server', flags, { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of readline.createInterface({ input: child.stdout })) if (line.includes('eady to accept')) break;
  child.stdout.resume();
  return { port, pid: child.pid, stop: () => child.kill() };
}

/**
 * @typedef {object} Row
 * @property {keyof typeof TARGETS | null} name The name of the ratio, if it has a target.
 * @property {string} [kept] The name of the ratio with reused strings.
 * @property {string} text
 * @property {number} theirs
 * @property {number} ours
 * @property {string} unit
 * @property {number} [ratio] By default theirs over ours.
 * @property {number} [error] The standard error of the ratio, where that is a mean.
 */

/**
 * @param {number} redisPort
 * @returns {Row[]}
 */
function callRows(redisPort) {
  const ns = node('--expose-gc', 'calls.js', 'new', String(redisPort));
  const row = (name, text, theirs, ours) => ({ name, text, theirs, ours, unit: 'ns' });
  return [
    row('erl_hot', 'allow, one tag: express-rate-limit in memory', ns.erlHot, ns.allowHot),
    row('rlf_hot', 'allow, one tag: rate-limiter-flexible in memory', ns.rlfHot, ns.allowHot),
    row('erl_1m', 'allow, a million tags: express-rate-limit', ns.erlMany, ns.allowMany),
    row('rlf_1m', 'allow, a million tags: rate-limiter-flexible', ns.rlfMany, ns.allowMany),
    row('rlf_redis', 'allow, one tag: rate-limiter-flexible, Redis', ns.redis, ns.allowHot),
    row('check_100k', 'check, 100,000 tags: express-rate-limit', ns.erlSome, ns.checkSome),
  ];
}

/**
 * The same calls with reused strings, see calls.js.
 * @returns {Row[]}
 */
function keptRows() {
  const ns = node('--expose-gc', 'calls.js', 'kept');
  const row = (kept, text, theirs, ours) => ({ name: null, kept, text, theirs, ours, unit: 'ns' });
  return [
    row('erl_hot', 'strings reused: allow, one tag: express-rate-limit', ns.erlHot, ns.allowHot),
    row('rlf_hot', '  rate-limiter-flexible in memory', ns.rlfHot, ns.allowHot),
    row('erl_1m', '  a million tags: express-rate-limit', ns.erlMany, ns.allowMany),
    row('rlf_1m', '  a million tags: rate-limiter-flexible', ns.rlfMany, ns.allowMany),
    row('check_100k', '  check, 100,000 tags: express-rate-limit', ns.erlSome, ns.checkSome),
  ];
}

/** @returns {Row[]} */
function memoryRows() {
  const [theirs, ours] = ['erl', 'ours'].map((kind) => node('--expose-gc', 'memory.js', kind));
  return [{ name: 'memory', text: 'memory of a tag: express-rate-limit', theirs, ours, unit: 'B' }];
}

/** @param {number[]} numbers */
const mean = (numbers) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;

/**
 * Returns the interquartile mean, which ignores outliers.
 * @param {number[]} numbers
 */
function middle(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const quarter = numbers.length >> 2;
  return mean(sorted.slice(quarter, numbers.length - quarter));
}

/**
 * Returns the ratio of one kind to its bases. The ratios are averaged as logarithms, so that the ratio
 * of two equal kinds is 1. The mean of the bases would be too large as a denominator, because slow
 * rounds are more frequent than fast ones.
 * @param {number[]} kind
 * @param {number[][]} bases
 */
function over(kind, bases) {
  return Math.exp(mean(bases.map((base) => middle(kind.map((one, i) => Math.log(one / base[i]))))));
}

/**
 * Returns the ratio of the means of all rounds, including outliers.
 * @param {number[]} kind
 * @param {number[][]} bases
 */
const overAll = (kind, bases) => mean(kind) / mean(bases.map(mean));

/**
 * The ratio of a start is the interquartile mean of its rounds. The result is the mean over all starts
 * with its standard error. Without noise, the ratio of the two bare applications would be 1.
 * @param {{ port: number, pid: number | undefined }} redis
 * @returns {Row[]}
 */
function expressRows(redis) {
  /** @type {Record<string, number[]>[][]} */
  const [near, far] = node('servers.js', String(redis.port), String(redis.pid));
  const row = (name, text, starts, kind, bases = ['bare', 'bare_2'], compare = over) => {
    const ratios = starts.map((us) => compare(us[kind], bases.map((base) => us[base])));
    const ratio = mean(ratios);
    const error = Math.sqrt(mean(ratios.map((one) => (one - ratio) ** 2)) / (ratios.length - 1));
    const figure = (kinds) => mean(kinds.flatMap((one) => starts.map((us) => middle(us[one]))));
    return { name, text, theirs: figure(bases), ours: figure([kind]), unit: 'us', ratio, error };
  };
  return [
    row('express_cpu', 'CPU of a request to Express, over bare', near, 'ours'),
    row(null, '  all rounds, with all garbage collection', near, 'ours', ['bare', 'bare_2'], overAll),
    row(null, '  with two constant header fields', near, 'fields'),
    row(null, '  second bare application: the noise', near, 'bare_2', ['bare']),
    row(null, '  with express-rate-limit', far, 'erl'),
    row(null, '  with rate-limiter-flexible and Redis', far, 'rlf'),
  ];
}

/** Arguments select parts (calls, kept, memory, express); then no file is written. */
async function main() {
  const parts = process.argv.slice(2);
  const wanted = (part) => parts.length === 0 || parts.includes(part);
  const redis = await startRedis();
  /** @type {Row[]} */
  const rows = [];
  try {
    if (wanted('calls')) rows.push(...callRows(redis.port));
    if (wanted('kept')) rows.push(...keptRows());
    if (wanted('memory')) rows.push(...memoryRows());
    if (wanted('express')) rows.push(...expressRows(redis));
  } finally {
    redis.stop();
  }
  rows.forEach(print);
  if (parts.length > 0) return;
  const ratios = Object.fromEntries(rows.flatMap((row) => (row.name === null ? [] : [[row.name, toRatio(row)]])));
  const kept = Object.fromEntries(rows.flatMap((row) => (row.kept === undefined ? [] : [[row.kept, toRatio(row)]])));
  const figures = rows.map((row) => ({
    name: row.name,
    text: row.text.trim(),
    theirs: rounded(row.theirs),
    ours: rounded(row.ours),
    unit: row.unit,
    ratio: toRatio(row),
    ...(row.error === undefined ? {} : { error: rounded(row.error) }),
  }));
  const folder = join(ROOT, process.env.BENCH_SMALL ? 'target/bench/small' : 'bench/out');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'node.json'), `${JSON.stringify({ ratios, kept, targets: TARGETS, figures }, null, 2)}\n`);
}

/** @param {Row} row */
const toRatio = ({ theirs, ours, ratio = theirs / ours }) => rounded(ratio);

/** @param {Row} row */
function print(row) {
  const { name, text, theirs, ours, unit, error } = row;
  const ratio = toRatio(row);
  let target = '';
  if (name !== null && !process.env.BENCH_SMALL) {
    const [reached, word] = name === 'express_cpu' ? [ratio <= TARGETS[name], 'most'] : [ratio >= TARGETS[name], 'least'];
    target = `   at ${word} ${TARGETS[name]}: ${reached ? 'reached' : 'MISSED'}`;
  }
  const figures = [theirs, ours].map((figure) => `${figure.toFixed(unit === 'us' ? 1 : 0)} ${unit}`.padStart(11)).join('');
  const spread = error === undefined ? '' : ` +-${error.toFixed(3)}`;
  console.log(`${text.padEnd(50)}${figures}${ratio.toFixed(error === undefined ? 2 : 3).padStart(9)}${spread}${target}`);
}

main();
