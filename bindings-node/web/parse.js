// Addresses as peers and proxies write them, in all their spellings, and back.
'use strict';

const PORT = /^:[0-9]{1,5}$/;

/**
 * Reads an address: 4 or 16 bytes, or null if it is none. Blanks around it, brackets, a port and a
 * zone do not matter, nor does how it is spelled.
 * @param {unknown} text
 * @returns {Uint8Array | null}
 */
function parseAddress(text) {
  if (typeof text !== 'string') return null;
  return parse4(text) ?? parseOther(text.replace(/^[ \t]+|[ \t]+$/g, ''));
}

/** @param {string} text */
function parseOther(text) {
  if (text.startsWith('[')) {
    const end = text.indexOf(']');
    if (end < 0) return null;
    const port = text.slice(end + 1);
    return port === '' || PORT.test(port) ? unmapped(parse6(text.slice(1, end))) : null;
  }
  const colon = text.indexOf(':');
  if (colon < 0) return parse4(text);
  if (text.indexOf(':', colon + 1) < 0) {
    return PORT.test(text.slice(colon)) ? parse4(text.slice(0, colon)) : null;
  }
  return unmapped(parse6(text));
}

/**
 * Four numbers, as inet_pton takes them: leading zeros might be octal, so there are none.
 * @param {string} text
 */
function parse4(text) {
  if (text.length > 15) return null;
  const bytes = new Uint8Array(4);
  let part = 0;
  let value = -1;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === 0x2e) {
      if (value < 0 || part === 3) return null;
      bytes[part] = value;
      part += 1;
      value = -1;
    } else {
      const digit = code - 0x30;
      if (digit < 0 || digit > 9 || value === 0) return null;
      value = value < 0 ? digit : value * 10 + digit;
      if (value > 255) return null;
    }
  }
  if (part !== 3 || value < 0) return null;
  bytes[3] = value;
  return bytes;
}

/**
 * @param {string} text With or without a zone.
 * @returns {Uint8Array | null}
 */
function parse6(text) {
  const halves = text.split('%', 1)[0].split('::');
  if (halves.length > 2) return null;
  const head = toGroups(halves[0], halves.length === 1);
  const tail = halves.length === 2 ? toGroups(halves[1], true) : [];
  if (head === null || tail === null) return null;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return null;
  const bytes = new Uint8Array(16);
  head.forEach((group, i) => put(bytes, i, group));
  tail.forEach((group, i) => put(bytes, 8 - tail.length + i, group));
  return bytes;
}

/**
 * @param {Uint8Array} bytes
 * @param {number} index
 * @param {number} group
 */
function put(bytes, index, group) {
  bytes[2 * index] = group >> 8;
  bytes[2 * index + 1] = group & 0xff;
}

/**
 * The groups of 16 bits in one half of an address.
 * @param {string} text
 * @param {boolean} last Whether it is the end, which may be written as IPv4.
 * @returns {number[] | null}
 */
function toGroups(text, last) {
  if (text === '') return [];
  const groups = [];
  const parts = text.split(':');
  for (const [i, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(parseInt(part, 16));
    } else {
      const four = last && i === parts.length - 1 ? parse4(part) : null;
      if (four === null) return null;
      groups.push((four[0] << 8) | four[1], (four[2] << 8) | four[3]);
    }
  }
  return groups;
}

/**
 * The IPv4 address that an IPv6 address stands for, which is in its last four bytes: mapped,
 * compatible (RFC 4291), translated by NAT64 (RFC 6052). By range, never by spelling.
 * @template {Uint8Array | null} A
 * @param {A} address
 * @returns {A | Uint8Array}
 */
function unmapped(address) {
  if (address === null || address.length === 4) return address;
  const zeros = (/** @type {number} */ from, /** @type {number} */ to) =>
    address.subarray(from, to).every((byte) => byte === 0);
  const mapped = zeros(0, 10) && address[10] === 0xff && address[11] === 0xff;
  const compatible = zeros(0, 12) && address[12] !== 0;
  const nat64 = address[0] === 0 && address[1] === 0x64 && address[2] === 0xff && address[3] === 0x9b && zeros(4, 12);
  return mapped || compatible || nat64 ? address.slice(12) : address;
}

/**
 * An address as people write it.
 * @param {Uint8Array} address
 */
function formatAddress(address) {
  if (address.length === 4) return address.join('.');
  const groups = Array.from({ length: 8 }, (_, i) => ((address[2 * i] << 8) | address[2 * i + 1]).toString(16));
  const text = groups.join(':');
  // The longest run of zeros, the first of several.
  const runs = Array.from(text.matchAll(/(?<![0-9a-f])0(?::0)+(?![0-9a-f])/g), ([run]) => run);
  const longest = runs.reduce((best, run) => (run.length > best.length ? run : best), '');
  if (longest === '') return text;
  const at = text.search(new RegExp(`(?<![0-9a-f])${longest}(?![0-9a-f])`));
  const before = text.slice(0, at).replace(/:$/, '');
  const after = text.slice(at + longest.length).replace(/^:/, '');
  return `${before}::${after}`;
}

module.exports = { formatAddress, parse4, parse6, parseAddress, unmapped };
