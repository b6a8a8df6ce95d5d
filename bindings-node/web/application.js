// The name of the running application, which is also the name of its table.
//
// All workers of an application must find the same name, however they are started (node:cluster, PM2,
// worker_threads), and again after a restart. Another application, or the same one in another folder, must find
// another name. So it consists of the folder of the package.json nearest to the main module, and of the name in that
// file. The user is not part of it, because the tables of different users are separate anyway.
'use strict';

const { existsSync, readFileSync } = require('node:fs');
const { basename, dirname, join, sep } = require('node:path');

const { loadForPlatform } = require('../native.js');

/**
 * The name of the application. Undefined in an interactive Node, which has no script.
 * @param {string | undefined} main The main module.
 * @param {string} working The working directory.
 * @returns {string | undefined}
 */
function applicationName(main = process.argv[1], working = process.cwd()) {
  if (main === undefined || main.startsWith('[')) return undefined; // [eval], [worker eval]
  // A tool in node_modules (ts-node, next, pm2) is not the application. PM2 names the application in pm_exec_path.
  const own = [main, process.env.pm_exec_path].find((file) => file && !file.split(sep).includes('node_modules'));
  const start = own === undefined ? working : dirname(own);
  const folder = packageFolder(start) ?? start;
  const name = packageName(folder);
  const shown = basename(folder);
  return loadForPlatform().applicationTable([shown, name === shown ? '' : name], [folder, name]);
}

/**
 * The nearest folder with a package.json, from this one upwards.
 * @param {string} from
 * @returns {string | undefined}
 */
function packageFolder(from) {
  for (let folder = from; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

/** @param {string} folder */
function packageName(folder) {
  try {
    const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return typeof name === 'string' ? name : '';
  } catch {
    return '';
  }
}

module.exports = { applicationName };
