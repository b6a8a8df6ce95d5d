// Tests of the cluster methods of a throttle that exchanges no reports with peers. Also run for WebAssembly.
'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { failsWith } = require('./vectors.js');

const ZEROS = '0'.repeat(16);

/**
 * @param {string} label
 * @param {any} dthrottle
 */
function testCluster(label, dthrottle) {
  const { ManualClock, Throttle } = dthrottle;
  const open = () => new Throttle({ rate: '1/s', cluster: { name: 'test' }, clock: new ManualClock() });

  describe(`cluster, ${label}`, () => {
    it('a throttle without a cluster has no cluster statistics and no events', () => {
      const throttle = new Throttle('1/s');
      assert.equal(throttle.start(), undefined);
      assert.equal(throttle.clusterStats(), null);
      assert.deepEqual(throttle.events(), []);
      assert.equal(throttle.stats().unreported, 0);
    });

    it('a node that has not started has no peers and no incarnation', () => {
      const throttle = open();
      throttle.start();
      assert.equal(throttle.allow('t'), true);
      const { counts, ...stats } = throttle.clusterStats();
      assert.deepEqual(stats, { node: ZEROS, incarnation: ZEROS, pid: 0, peers: [] });
      for (const name of ['datagramsSent', 'reportsDuplicate', 'entriesUnknownRule', 'droppedAuth']) {
        assert.equal(counts[name], 0, name);
      }
      for (const [name, count] of Object.entries(counts)) {
        assert.match(name, /^[a-z]+([A-Z][a-z]+)*$/);
        assert.equal(count, 0, name);
      }
      assert.deepEqual(throttle.events(0), []);
    });

    it('events() accepts only whole numbers of at least 0', () => {
      const throttle = open();
      for (const after of [-1, 1.5, NaN, Infinity, 2 ** 53, '1', null, 1n, {}]) {
        assert.throws(() => throttle.events(after), failsWith(dthrottle, 'argument'));
      }
      assert.deepEqual(throttle.events(Number.MAX_SAFE_INTEGER), []);
    });

    it('a closed throttle cannot start but still returns cluster statistics', () => {
      const throttle = open();
      throttle.close();
      assert.throws(() => throttle.start(), failsWith(dthrottle, 'closed'));
      assert.deepEqual(throttle.clusterStats().peers, []);
      assert.deepEqual(throttle.events(), []);
    });

    it('only a throttle has cluster methods, a domain has none', () => {
      const domain = open().domain('default');
      for (const name of ['start', 'clusterStats', 'events', 'link']) assert.equal(domain[name], undefined);
      assert.throws(() => Throttle.prototype.clusterStats.call({}), TypeError);
    });
  });
}

module.exports = { testCluster };
