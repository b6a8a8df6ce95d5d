// Errors about options: what is wrong, what would be right, and the name that was meant.
'use strict';

const { DthrottleError } = require('../face/errors.js');
const { describe } = require('../face/values.js');

/**
 * The error about an option's value.
 * @param {string} option
 * @param {unknown} value
 * @param {string} right What it must be.
 */
function wrong(option, value, right) {
  return misuse(option, `${describe(value)} cannot be; must be ${right}`);
}

/**
 * The error about an option.
 * @param {string} option
 * @param {string} message
 */
function misuse(option, message) {
  return new DthrottleError('DTHROTTLE_CONFIG', `${option}: ${message}`, { field: option });
}

/**
 * Checks that all names are known: a misspelled option must not be silently without effect.
 * @param {string} where
 * @param {Iterable<string>} given
 * @param {readonly string[]} names
 * @param {Readonly<Record<string, string>>} [elsewhere] What the same is called here, by its name in
 *   other libraries; or what to do instead, where it is called nothing here.
 */
function known(where, given, names, elsewhere = {}) {
  for (const name of given) {
    if (names.includes(name)) continue;
    const instead = Object.hasOwn(elsewhere, name) ? elsewhere[name] : meant(name, names);
    let hint = instead ?? `known are: ${names.join(', ')}`;
    if (names.includes(hint)) hint = `did you mean ${hint}?`;
    throw new DthrottleError('DTHROTTLE_CONFIG', `${where}: unknown option ${describe(name)}; ${hint}`, {
      field: name,
    });
  }
}

/**
 * The name that is nearest, if one is near.
 * @param {string} name
 * @param {readonly string[]} names
 * @returns {string | undefined}
 */
function meant(name, names) {
  const plain = name.toLowerCase();
  let best;
  // A third of the letters may be wrong.
  let least = Math.max(1, Math.floor(plain.length / 3)) + 1;
  for (const candidate of names) {
    const steps = distance(plain, candidate.toLowerCase());
    if (steps < least) [best, least] = [candidate, steps];
  }
  return best;
}

/**
 * How many letters have to be put in, taken out, replaced or swapped with the next.
 * @param {string} a
 * @param {string} b
 */
function distance(a, b) {
  /** @type {number[][]} */
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      row[j] = Math.min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        row[j] = Math.min(row[j], rows[i - 2][j - 2] + 1);
      }
    }
    rows.push(row);
  }
  return rows[a.length][b.length];
}

module.exports = { known, meant, misuse, wrong };
