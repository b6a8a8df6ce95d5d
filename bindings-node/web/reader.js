// How adapters read requests, and the reader for Node's own requests.
'use strict';

/** @import { IncomingMessage } from 'node:http' */

/**
 * @typedef {object} Reader Reads the requests of a framework.
 * @property {(request: any) => string} method The method, in upper case.
 * @property {(request: any) => ReadonlySet<string>} paths The whole path without the query, in all equivalent spellings.
 * @property {boolean} [ignoresCase] Whether /LOGIN may lead to the handler of /login.
 * @property {(request: any, name: string) => string | undefined} header The value of a header, by its name in lower case.
 * @property {(request: any) => string | undefined} peer The address at the other end of the connection.
 * @property {(request: any) => string | undefined} [client] The client's address by the rules of the framework;
 *   undefined if it is the peer.
 * @property {(request: any) => boolean} isGone Whether the connection is closed, so that its address is unknown.
 * @property {(request: any) => string | undefined} forwardedFor The header X-Forwarded-For.
 * @property {(request: any) => string | undefined} [trustProxy] Describes what is wrong with these rules, if anything.
 */

/** A plain path, which all frameworks read alike. */
const PLAIN = /^\/[^\s#;\\]*$/;
const DOTS = /(?:\/|%2f)(?:\.|%2e)/i;

/**
 * The path of a request in all spellings by which a framework may have found its handler: as sent and decoded, with
 * and without trailing slashes. A request is limited if any of them matches, so that no spelling avoids the throttle.
 * @param {string | undefined} url
 * @returns {ReadonlySet<string>}
 */
function toPaths(url = '') {
  const paths = new Set();
  for (const target of toTargets(url)) {
    for (const path of [target, decode(target)]) paths.add(path).add(withoutSlashes(path));
  }
  return paths;
}

/**
 * All readings of a target as a path: without `http://host`, fragment, parameters and blanks, with backslashes as
 * slashes, and with dots resolved.
 * @param {string} url
 * @returns {string[]}
 */
function toTargets(url) {
  const targets = [url.split('?', 1)[0]];
  if (!PLAIN.test(targets[0])) {
    for (const absolute of [/^[^/\\?#]*:[/\\]{2}[^/\\?#]*/, /^https?:\/\/.*?(?=\/)/i]) {
      const path = url.replace(absolute, '').split(/[?#]/, 1)[0].trim().replaceAll('\\', '/') || '/';
      targets.push(path, path.split(';', 1)[0]);
    }
  }
  if (DOTS.test(targets[0]) && URL.canParse(url, 'http://host')) targets.push(new URL(url, 'http://host').pathname);
  return targets;
}

/** @param {string} path */
function decode(path) {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** @param {string} path */
function withoutSlashes(path) {
  // A regular expression would take quadratic time for many slashes.
  let end = path.length;
  while (end > 1 && path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

/**
 * The lines of a header as one string.
 * @param {string | string[] | undefined} value
 */
const joined = (value) => (Array.isArray(value) ? value.join(', ') : value);

/** @type {Reader} */
const nodeReader = {
  method: (/** @type {IncomingMessage} */ request) => request.method ?? '',
  paths: (/** @type {IncomingMessage} */ request) => toPaths(request.url),
  // A header that was sent twice counts as absent, because the application may read either value. headersDistinct
  // does not exist in HTTP/2 and in injected requests.
  header({ headers, rawHeaders = [] }, name) {
    const value = headers[name];
    if (typeof value !== 'string') return undefined;
    let lines = 0;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      if (rawHeaders[i].length === name.length && rawHeaders[i].toLowerCase() === name) lines += 1;
    }
    return lines > 1 ? undefined : value;
  },
  peer: (/** @type {IncomingMessage} */ request) => request.socket?.remoteAddress,
  isGone: (/** @type {IncomingMessage} */ request) => request.socket?.destroyed ?? false,
  forwardedFor: (/** @type {IncomingMessage} */ request) => joined(request.headers?.['x-forwarded-for']),
};

module.exports = { nodeReader, toPaths };
