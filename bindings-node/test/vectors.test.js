// Runs the shared vectors with the addon.
'use strict';

const assert = require('node:assert/strict');
const { it } = require('node:test');

const { sameDecision, testVectors } = require('./shared/vectors.js');

it('the comparison of vectors reports wrong values', () => {
  const decision = { allowed: true, limit: Infinity, retryAfterMs: 1 };
  sameDecision(decision, { allowed: true, limit: 'unlimited', retry_after_ns: 1_000_002 });
  for (const wrong of [{ allowed: false }, { limit: 5 }, { retry_after_ns: 1_000_003 }]) {
    assert.throws(() => sameDecision(decision, wrong), assert.AssertionError);
  }
});

testVectors('Node', require('../index.js'), 'node');
