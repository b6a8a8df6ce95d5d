// Puts pages of docs/ into an npm package, and makes the links of its README and of these pages lead to files of
// the package. A link to a file that is not in the package becomes plain text.
//
//     node scripts/pack-docs.js README FOLDER PAGE...    writes FOLDER/README.md and FOLDER/docs/PAGE.md
'use strict';

const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const { dirname, join, relative, resolve } = require('node:path');

const DOCS = join(__dirname, '../docs');
const LINK = /!?\[([^\]]*)\]\(([^)\s]+)\)/g;

const [readme, folder, ...names] = process.argv.slice(2);
/** Where each page is in the package, by its path in the checkout. */
const places = new Map([
  [resolve(readme), 'README.md'],
  ...names.map((name) => /** @type {const} */ ([join(DOCS, `${name}.md`), join('docs', `${name}.md`)])),
]);

/**
 * @param {string} text
 * @param {string} path The page in the checkout.
 * @param {string} place The page in the package.
 */
function convert(text, path, place) {
  return text.replace(LINK, (whole, label, target) => {
    const [file, anchor] = target.split('#');
    if (file === '' || file.includes('://')) return whole;
    const found = places.get(resolve(dirname(path), file));
    if (found === undefined) return label;
    const link = relative(dirname(place), found) || '.';
    return `[${label}](${link}${anchor === undefined ? '' : `#${anchor}`})`;
  });
}

mkdirSync(join(folder, 'docs'), { recursive: true });
for (const [path, place] of places) {
  const target = join(folder, place);
  // A rename, because a test may read the README of a checkout meanwhile.
  writeFileSync(`${target}.new`, convert(readFileSync(path, 'utf8'), path, place));
  renameSync(`${target}.new`, target);
}
