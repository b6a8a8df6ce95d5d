// Tests of client addresses: the shared vectors, and any text.
'use strict';

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { BlockList, isIPv6 } = require('node:net');
const { join } = require('node:path');
const { describe, it } = require('node:test');

const { ManualClock, Throttle } = require('../index.js');
const { ClientAddress, clientAddress, parseAddress } = require('../web/address.js');

/** @typedef {any} Json */
/** @type {{ good: Json[], bad: Json[] }} */
const vectors = JSON.parse(readFileSync(join(__dirname, '../../tests/vectors/addresses.json'), 'utf8'));

/** The JavaScript names of options in the vectors. */
const NAMES = new Map([['trusted_proxies', 'trustedProxies'], ['ipv6_prefix', 'ipv6Prefix']]);

/** @param {Uint8Array | null} tag */
const hex = (tag) => (tag === null ? null : Buffer.from(tag).toString('hex'));

/** Random numbers that are the same in every run. @param {number} seed */
function dice(seed) {
  return (/** @type {number} */ sides) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * sides);
  };
}

/** Returns a new buffer for each call. */
const PEERS = ['198.51.100.255', '2001:db8:ffff:2::1'];

describe('client addresses', () => {
  for (const row of vectors.good) {
    it(row.why, () => {
      const options = { trustedProxies: row.trusted_proxies, ipv6Prefix: row.ipv6_prefix };
      assert.equal(hex(clientAddress(row.peer, row.forwarded_for, options)), row.tag_hex);
      assert.equal(hex(clientAddress(row.peer, row.forwarded_for.join(', '), options)), row.tag_hex);
      const often = new ClientAddress(options);
      for (let i = 0; i < 3; i += 1) assert.equal(hex(often.tag(row.peer, row.forwarded_for)), row.tag_hex);
    });
  }

  for (const { why, field, value, says } of vectors.bad) {
    it(`${field}: ${why}`, () => {
      const name = String(NAMES.get(field));
      assert.throws(() => new ClientAddress({ [name]: value }), (/** @type {Json} */ error) => {
        assert.deepEqual([error.code, error.field], ['DTHROTTLE_CONFIG', name]);
        for (const part of says) assert.ok(error.message.includes(NAMES.get(part) ?? part), error.message);
        return true;
      });
    });
  }

  it('addresses are tags like any other bytes', () => {
    const throttle = new Throttle({ rate: '9/day', clock: new ManualClock() });
    for (const peer of ['203.0.113.255', '127.0.0.1', '0.0.0.0', '2001:db8:ffff:1::1', ...PEERS]) {
      const tag = new ClientAddress().tag(peer) ?? assert.fail('no address');
      const same = [tag, new Uint8Array(tag), Buffer.from(tag), structuredClone(tag), tag.slice(), tag.subarray(0)];
      assert.deepEqual(same.map((each) => throttle.check(each).remaining), [8, 7, 6, 5, 4, 3], peer);
      throttle.refund(tag);
      assert.equal(throttle.allow(tag) && throttle.peek(tag).remaining, 3);
      assert.deepEqual(throttle.allowMany([tag, tag]), [true, true]);
      assert.equal(throttle.peek(Buffer.from(tag)).remaining, 1);
      throttle.reset(tag);
      assert.equal(throttle.peek(tag).remaining, 9);
      const others = [tag.slice(1), tag.subarray(0, 2), tag.map(() => 7), Reflect.construct(tag.constructor, [[1, tag.length]])];
      assert.deepEqual(others.map((each) => throttle.check(each).remaining), [8, 8, 8, 8], peer);
      for (const each of others) throttle.reset(each);
      assert.deepEqual(JSON.parse(JSON.stringify(tag)), { ...tag });
    }
  });

  it('the returned bytes belong to the caller', () => {
    const find = new ClientAddress();
    const throttle = new Throttle({ rate: '9/day', clock: new ManualClock() });
    const left = ['203.0.113.7', '203.0.113.8'].map((peer) => {
      const tag = find.tag(peer) ?? assert.fail('no address');
      tag[3] = 0;
      return [throttle.check(tag).remaining, throttle.peek(tag).remaining];
    });
    assert.deepEqual(left, [[8, 8], [7, 7]]);
    assert.equal(hex(find.tag('203.0.113.7')), 'cb007107');
  });

  it('all spellings of an address give the same bytes', () => {
    const roll = dice(1);
    for (let i = 0; i < 2000; i += 1) {
      const kept = [0xffff, 0, roll(2) * 0xffff];
      const groups = Array.from({ length: 8 }, (_, j) => roll(65536) & kept[(j * 3) >> 3]);
      const long = groups.map((group) => group.toString(16).padStart(4, '0')).join(':');
      const bytes = new Uint8Array(groups.flatMap((group) => [group >> 8, group & 0xff]));
      const short = new URL(`http://[${long}]`).hostname.slice(1, -1);
      assert.ok(isIPv6(short), short);
      const spelled = [long, long.toUpperCase(), short, `[${short}]:8080`, ` ${short}%eth0`];
      const tags = new Set(spelled.map((text) => hex(clientAddress(text, null, { ipv6Prefix: 128 }))));
      assert.equal(tags.size, 1);
      assert.ok(hex(bytes)?.endsWith(String([...tags][0])));
    }
  });

  it("parseAddress() accepts what Node's isIP() accepts", () => {
    const roll = dice(3);
    let hits = 0;
    for (let i = 0; i < 20_000; i += 1) {
      const groups = Array.from({ length: 3 + roll(6) }, () => roll(2 ** (4 * roll(6))).toString(16));
      const text = groups.map((group) => (roll(5) ? group : '')).join(':');
      assert.equal(parseAddress(text) !== null, isIPv6(text), text);
      if (isIPv6(text)) hits += 1;
    }
    assert.ok(hits > 100);
  });

  it('trusted networks match like a BlockList of Node', () => {
    const roll = dice(4);
    const networks = ['10.0.0.0/9', '203.0.113.64/27', '198.51.100.3', '2001:db8:8000::/33', 'fd00::/8'];
    const list = new BlockList();
    for (const network of networks) {
      const [address, bits = '32'] = network.split('/');
      list.addSubnet(address, Number(bits), address.includes(':') ? 'ipv6' : 'ipv4');
    }
    const find = new ClientAddress({ trustedProxies: networks, ipv6Prefix: 128 });
    const starts = ['10.127.', '10.128.', '203.0.113.', '198.51.100.'];
    for (let i = 0; i < 5000; i += 1) {
      const start = starts[roll(starts.length)];
      const text = start + Array.from({ length: 5 - start.split('.').length }, () => roll(i % 2 ? 256 : 8)).join('.');
      const six = `${['2001:db8', 'fd00:1'][roll(2)]}:${roll(65536).toString(16)}::${roll(9)}`;
      for (const [address, family] of /** @type {const} */ ([[text, 'ipv4'], [six, 'ipv6']])) {
        const found = find.tag(address, '192.0.2.1');
        assert.equal(hex(found) === 'c0000201', list.check(address, family), address);
      }
    }
  });

  it('no content of a request throws an error', () => {
    const roll = dice(2);
    const pieces = [...'0123456789abcdefF.:[]% ,\t', '::', 'ffff', '255', '%eth0', ':80', 'unix', '\0', '\ud800'];
    const text = () => Array.from({ length: roll(13) }, () => pieces[roll(pieces.length)]).join('');
    const finders = [0, 1, 3, ['unix', '0.0.0.0/1', '::/1']].map((trustedProxies) => new ClientAddress({ trustedProxies }));
    const seen = new Set();
    for (let i = 0; i < 20_000; i += 1) {
      for (const find of finders) seen.add(find.tag(text(), text())?.length);
    }
    assert.deepEqual([...seen].sort(), [16, 4, undefined]);
    for (const peer of /** @type {any[]} */ ([null, undefined, 7, Buffer.from('10.0.0.1'), {}, ['10.0.0.1']])) {
      assert.equal(clientAddress(peer), null);
      assert.equal(hex(clientAddress(peer, [peer, '203.0.113.7'], { trustedProxies: 1 })), 'cb007107');
    }
  });

  it('the address is found in a header of any length', () => {
    const find = new ClientAddress({ trustedProxies: ['10.0.0.0/8'] });
    assert.equal(hex(find.tag('10.0.0.1', '10.0.0.9,'.repeat(50_000))), '0a000009');
    assert.equal(hex(find.tag('10.0.0.1', `${'6.6.6.6,'.repeat(50_000)}203.0.113.7`)), 'cb007107');
  });
});
