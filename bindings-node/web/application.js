// The name of the running application, after which its table is named.
//
// All workers of an application must find the same name, however they are started (node:cluster,
// PM2, worker_threads), and so must the workers of tomorrow; another application, or the same one in
// another folder, must find another. So the name is made of the folder of the package.json nearest
// to the main module, and of the package's name. The user is not part of it: tables of different
// users are apart anyway.
'use strict';

const { existsSync, readFileSync } = require('node:fs');
const { basename, dirname, join, sep } = require('node:path');

const { loadForPlatform } = require('../native.js');

/**
 * A name for a table.
 * @param {string | undefined} main The file that was started.
 * @param {string} working The folder that the process runs in.
 * @returns {string | undefined} Nothing in an interactive Node, which is no application.
 */
function applicationName(main = process.argv[1], working = process.cwd()) {
  if (main === undefined || main.startsWith('[')) return undefined; // [eval], [worker eval]
  // A command of a package (ts-node, next, pm2) is not the application. PM2 says what it runs.
  const own = [main, process.env.pm_exec_path].find((file) => file && !file.split(sep).includes('node_modules'));
  const begin = own === undefined ? working : dirname(own);
  const folder = packageFolder(begin) ?? begin;
  const name = packageName(folder);
  const shown = basename(folder);
  return loadForPlatform().applicationTable([shown, name === shown ? '' : name], [folder, name]);
}

/**
 * The nearest folder with a package.json, here or above.
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
