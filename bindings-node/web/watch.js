// Looks at the first requests of a middleware for signs that it is used wrongly. After these it
// costs nothing.
'use strict';

const { isIPv6 } = require('node:net');

const { Networks } = require('./networks.js');
const { parseAddress } = require('./parse.js');

/** @import { Reader } from './gate.js' */
/** @import { Settings } from './options.js' */

/** What is wrong shows in any request, or never. */
const LOOKED_AT = 100;

/** Where proxies stand, but hardly a client of the world. */
const INSIDE = new Networks(
  ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '127.0.0.0/8', '::1', 'fc00::/7', 'fe80::/10'],
  'inside',
);

/** @type {WeakMap<object, Set<string>>} In which buckets a request was counted. */
const counted = new WeakMap();

class Watch {
  #left = LOOKED_AT;
  #reader;
  #settings;

  /**
   * @param {Settings} settings
   * @param {Reader} reader
   */
  constructor(settings, reader) {
    this.#settings = settings;
    this.#reader = reader;
  }

  get watching() {
    return this.#left > 0;
  }

  /**
   * @param {any} request
   * @param {string | Uint8Array} tag
   */
  look(request, tag) {
    this.#left -= 1;
    this.#doubleCount(request, tag);
    if (this.#settings.tag === null) this.#proxies(request);
    else if (typeof tag === 'string' && isIPv6(tag)) {
      this.#settings.reports.misuse(
        'ipv6Tag',
        'the tag is an IPv6 address as text, and a client has many of them: ' +
          "use clientAddress of 'dthrottle/address', or leave the tag out",
      );
    }
  }

  /**
   * @param {any} request
   * @param {string | Uint8Array} tag
   */
  #doubleCount(request, tag) {
    const { reports, opened } = this.#settings;
    if (!reports.wants('doubleCount')) return;
    const key = JSON.stringify([opened.place, opened.name, typeof tag === 'string' ? tag : [...tag]]);
    const buckets = counted.get(request) ?? new Set();
    counted.set(request, buckets);
    if (buckets.has(key)) {
      reports.misuse(
        'doubleCount',
        `a request was counted twice in domain '${opened.name}': is the middleware there twice, or is ` +
          'there another with the same rules? Give each a domain of its own',
      );
    }
    buckets.add(key);
  }

  /** @param {any} request */
  #proxies(request) {
    const { reports, trusts } = this.#settings;
    if (trusts) return;
    const wrong = this.#reader.trustProxy?.(request);
    if (wrong !== undefined) reports.misuse('trustProxy', wrong);
    if (!reports.wants('forwarded') || this.#reader.forwardedFor(request) === undefined) return;
    const peer = this.#reader.peer(request);
    const address = parseAddress(peer);
    // With trust of the framework's own, the client is another than the peer.
    if (this.#reader.client(request) !== peer || (address !== null && !INSIDE.has(address))) return;
    reports.misuse(
      'forwarded',
      'a request has X-Forwarded-For, which is not read because no proxy is trusted: behind a proxy ' +
        "all clients are one; set trustedProxies, such as ['10.0.0.0/8']",
    );
  }
}

module.exports = { Watch };
