// Tests of header fields and of request.rateLimit.
'use strict';

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const { describe, it } = require('node:test');

const dthrottle = require('../index.js');
const { throttle } = require('../web/express.js');
const { testFields } = require('./shared/fields.js');

/** @typedef {any} Any */

testFields('Node', dthrottle);

/** A request and its response with the properties that middleware uses. */
function exchange() {
  const response = Object.assign(new EventEmitter(), {
    statusCode: 200, headersSent: false, getHeader: () => undefined, setHeader() {}, end() {},
  });
  return { request: /** @type {Any} */ ({ method: 'GET', url: '/', headers: {}, socket: null, ip: '203.0.113.7' }), response };
}

describe('request.rateLimit', () => {
  /**
   * The resetTime of a request's rateLimit, which is read after a second.
   * @param {import('node:test').TestContext} t
   * @param {Any} options
   * @param {number} requests
   */
  function resetTime(t, options, requests) {
    t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 10_000 });
    const limit = throttle({ rate: '2/s', burst: 1, clock: new dthrottle.ManualClock(), ...options });
    /** @type {Any} */
    let request;
    for (let i = 0; i < requests; i += 1) {
      const { request: next, response } = exchange();
      request = next;
      limit(request, /** @type {Any} */ (response), () => {});
    }
    t.mock.timers.tick(1000);
    const first = request.rateLimit.resetTime.getTime();
    t.mock.timers.tick(1000);
    assert.equal(request.rateLimit.resetTime.getTime(), first);
    limit.close();
    return first;
  }

  it('resetTime is that of the decision if the request is delayed', (t) => {
    assert.equal(resetTime(t, { maxDelayMs: 900 }, 2), 11_000);
  });

  it('resetTime is that of the decision if a refusal is delayed', (t) => {
    assert.equal(resetTime(t, { throttleMilliseconds: 500 }, 2), 10_500);
  });

  it('changing the bytes of key and tag does not change the bucket', () => {
    const key = Uint8Array.of(1, 2, 3);
    const source = new dthrottle.Throttle({ rate: '1/minute', burst: 10, clock: new dthrottle.ManualClock() });
    const limit = throttle({ throttle: source, tag: () => key, skipFailedRequests: true });
    const { request, response } = exchange();
    limit(request, /** @type {Any} */ (response), () => {});
    key[0] = 9;
    for (const bytes of [request.rateLimit.key, request.rateLimit.tag]) bytes.fill(7);
    Object.assign(response, { headersSent: true, statusCode: 500 }).emit('close');
    assert.equal(source.peek(Uint8Array.of(1, 2, 3)).remaining, 10);
    for (const other of [[9, 2, 3], [7, 7, 7]]) assert.equal(source.peek(Uint8Array.from(other)).remaining, 10);
    limit.close();
  });
});
