// Tests that wrong options are errors when a middleware is made.
'use strict';

const assert = require('node:assert/strict');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, describe, it } = require('node:test');

const { ManualClock, Throttle } = require('../index.js');
const { throttle } = require('../web/express.js');
const { warnings } = require('./shared/web.js');

/** @type {any} */
const make = throttle;

/** @type {[string, any, string][]} */
const WRONG = [
  ['throttle', {}, 'a Throttle'],
  ['file', 5, 'text'],
  ['file', 'missing.toml', 'missing.toml'],
  ['rate', '10/fortnight', 'fortnight'],
  ['burst', 0, 'burst'],
  ['chargeRefused', 1, 'true or false'],
  ['rules', 'x', 'list'],
  ['domains', 'x', 'domains'],
  ['cluster', 'x', 'cluster'],
  ['clock', 'x', 'ManualClock'],
  ['windowMs', 1.5, 'whole number of milliseconds'],
  ['windowMs', 0, 'whole number of milliseconds'],
  ['limit', 0, 'whole number'],
  ['limit', () => 5, 'whole number'],
  ['max', '5', 'whole number'],
  ['domain', '', 'text'],
  ['domain', 5, 'text'],
  ['tag', 5, 'a function'],
  ['tag', 'header', 'header:X-Api-Key'],
  ['tag', 'header:a b', 'header:X-Api-Key'],
  ['tag', 'addres', '"address"'],
  ['keyGenerator', 'address', 'a function'],
  ['cost', '1', 'whole number'],
  ['cost', -1, 'whole number'],
  ['cost', 1.5, 'whole number'],
  ['cost', 11, 'at most 10, the burst'],
  ['methods', 'GET', 'list such as ["GET"'],
  ['methods', ['get'], '"GET"'],
  ['methods', [5], 'method'],
  ['methods', [], 'remove it'],
  ['routes', '/api', 'list'],
  ['routes', ['/(api'], 'regular expression'],
  ['routes', [5], 'text'],
  ['allow', '10.0.0.1', 'list'],
  ['allow', ['10.0.0.1/8'], '10.0.0.0/8'],
  ['allow', ['10.0.0.300'], 'network'],
  ['allow', ['2001:db8::/129'], 'network'],
  ['allow', [5], 'text or bytes'],
  ['allow', ['10.0.0.0/8', 'alice'], 'must have only addresses and networks such as "10.0.0.0/8", because tags are addresses'],
  ['allow', [''], 'got ""'],
  ['allow', ['*'], 'network'],
  ['allow', ['localhost'], 'network'],
  ['allow', ['10.0.0.1:80'], 'network'],
  ['allow', ['[::1]'], 'network'],
  ['allow', () => true, 'a function belongs in the option `skip`'],
  ['skip', ['10.0.0.1'], 'a function'],
  ['skipFailedRequests', 1, 'true or false'],
  ['skipSuccessfulRequests', 'no', 'true or false'],
  ['requestWasSuccessful', true, 'a function'],
  ['dryRun', 'yes', 'true or false'],
  ['status', 200, '400 to 599'],
  ['status', '429', '400 to 599'],
  ['status', 429.5, 'whole number'],
  ['body', 5, 'problem+json'],
  ['handler', 'x', 'a function'],
  ['onRefused', 'log', 'a function'],
  ['headers', 'draft-9', 'did you mean'],
  ['headers', 5, 'one of standard, draft-8'],
  ['legacyHeaders', 1, 'true or false'],
  ['retryAfter', 1, 'true or false'],
  ['requestPropertyName', '', 'text'],
  ['requestPropertyName', '__proto__', 'do not have already'],
  ['requestPropertyName', 'constructor', 'do not have already'],
  ['requestPropertyName', 'headers', 'do not have already'],
  ['requestPropertyName', 'url', 'do not have already'],
  ['maxDelayMs', '1s', 'a number'],
  ['maxDelayMs', -1, 'from 0'],
  ['maxDelayMs', NaN, 'from 0'],
  ['maxDelayMs', Infinity, 'from 0'],
  ['maxDelayed', 1.5, 'whole number'],
  ['throttleMilliseconds', -5, 'from 0'],
  ['trustedProxies', true, 'number of proxies'],
  ['trustedProxies', '10.0.0.1', 'list'],
  ['ipv6Prefix', 0, '1 to 128'],
  ['table', 5, 'must be a name such as "web"'],
  ['table', true, 'must be a name such as "web"'],
  ['table', 'a/b', 'letters, digits'],
  ['table', { nam: 'web' }, 'name'],
  ['validate', 'no', 'true, false'],
  ['validate', { trust: false }, 'trustProxy'],
];

/** The options, as the error about an unknown one lists them. */
const NAMES = (() => {
  try {
    return make({ xyzzy: 1 });
  } catch (error) {
    return /the known names are (.*)$/.exec(/** @type {Error} */ (error).message)?.[1].split(', ') ?? [];
  }
})();

/** The other options that a test of an option needs. @type {Record<string, object>} */
const BESIDE = {
  throttle: {}, file: {}, rate: {}, rules: {}, domains: {},
  windowMs: { limit: 5 }, limit: { windowMs: 1000 }, max: { windowMs: 1000 },
};

describe('options', () => {
  for (const [option, value, says] of WRONG) {
    it(`the option ${option} rejects ${String(value)}`, () => {
      const beside = BESIDE[option] ?? { rate: '10/s' };
      assert.throws(
        () => make({ table: option === 'file' || option === 'throttle' ? undefined : false, ...beside, [option]: value }),
        (/** @type {any} */ error) => {
          assert.match(error.code, /^DTHROTTLE_(CONFIG|FILE|ARGUMENT)$/);
          assert.ok(error.message.includes(says), error.message);
          if (error.code === 'DTHROTTLE_CONFIG') assert.ok(String(error.field).includes(option) || option === 'validate', error.field);
          return true;
        },
      );
    });
  }

  it('every option has a wrong value in this test', () => {
    assert.deepEqual([...new Set(WRONG.map(([option]) => option))].sort(), NAMES.sort());
  });

  it('an unknown option is an error that suggests the right name', () => {
    const near = {
      tags: 'tag', maxDealyMs: 'maxDelayMs', dryrun: 'dryRun', StatusCode: 'status', statusCode: 'status',
      message: 'body', key: 'tag', trustProxy: 'trustedProxies', ipv6Subnet: 'ipv6Prefix', standardHeaders: 'headers', store: 'table',
      allowList: 'did you mean `allow`?',
      skipFailedRequest: 'skipFailedRequests', xyzzy: 'the known names are throttle, file, rate',
    };
    for (const [option, name] of Object.entries(near)) {
      assert.throws(() => make({ rate: '10/s', table: false, [option]: 1 }), (/** @type {any} */ error) => {
        assert.deepEqual([error.code, error.field], ['DTHROTTLE_CONFIG', option]);
        assert.ok(error.message.includes(`${name}?`) || error.message.includes(name), error.message);
        return true;
      });
    }
  });

  it('an option of another library is an error that says what to do', () => {
    assert.throws(() => make({ rate: '10/s', table: false, passOnStoreError: true }), {
      message: '`passOnStoreError` is an unknown option; remove it, because requests always pass when the throttle fails',
    });
  });

  it('exactly one source of the throttle is required', () => {
    for (const source of [undefined, null, true, ['10/s'], () => 5, Symbol('x')]) {
      assert.throws(() => make(source), { code: 'DTHROTTLE_CONFIG', field: 'throttle' });
    }
    assert.throws(() => make({ table: false }), { field: 'rate', message: /missing.*"100\/s"/ });
    const there = new Throttle('10/s');
    assert.throws(() => make(there, { table: 'web' }), { field: 'table', message: /set it / });
    assert.throws(() => make(there, { burst: 5 }), { field: 'burst', message: /set it / });
    assert.throws(() => make(there.domain('default'), { domain: 'default' }), { field: 'domain', message: /must be left out, because the throttle is a domain$/ });
    assert.throws(() => make({ rate: '1/s', windowMs: 1000, limit: 5 }), { field: 'rate', message: /must not be given together with `windowMs` and `limit`/ });
    assert.throws(() => make({ windowMs: 1000 }), { field: 'limit', message: /is required with `windowMs`/ });
    assert.throws(() => make({ limit: 5 }), { field: 'windowMs', message: /is required with `limit`/ });
    assert.throws(() => make({ windowMs: 1000, limit: 5, max: 5 }), { field: 'max' });
    assert.throws(() => make('1/s', { tag: 'address', keyGenerator: () => 'x' }), { field: 'keyGenerator' });
    assert.throws(() => make('1/s', 'x'), { field: 'options' });
    assert.throws(() => make({ domains: { a: { rate: 1 } }, domain: 'b', table: false }), { code: 'DTHROTTLE_CONFIG', field: 'domain' });
  });

  it('options that are undefined or null are ignored', () => {
    for (const nothing of [undefined, null]) {
      const options = Object.fromEntries(NAMES.map((/** @type {string} */ name) => [name, nothing]));
      assert.equal(make({ ...options, rate: '1/day', table: false }).domain.rules[0].limit, 1);
    }
  });

  it('an error names the option as it was given', () => {
    for (const domain of ['q', 'a.b', 'GET /login', 'ü "x\\"', 'default']) {
      assert.throws(() => make({ rate: 'x', domain, table: false }), { field: 'rate', message: /^`rate` must be .*got "x"/ });
      assert.throws(() => make({ rules: [{ rate: 'x' }], domain, table: false }), { field: 'rules[0].rate' });
    }
    assert.throws(() => make({ rate: '1/s', domain: 'q\0', table: false }), { field: 'domain' });
    assert.throws(() => make({ domains: { q: { rate: 'x' } }, domain: 'q', table: false }), { field: 'domains.q.rate' });
  });

  it('allow accepts names if tags are names', () => {
    const allow = ['alice', '10.0.0.0/8', '2001:db8::1', Buffer.from('bob')];
    for (const who of [{ tag: 'header:X-Client' }, { tag: () => 'alice' }, { keyGenerator: () => 'alice' }]) {
      assert.equal(make({ rate: '1/day', table: false, allow, ...who }).domain.rules[0].limit, 1);
    }
    const error = { code: 'DTHROTTLE_CONFIG', field: 'allow', message: /^`allow` must have only addresses .*, got "alice"$/ };
    for (const who of [{}, { tag: 'address' }, { tag: null }]) {
      assert.throws(() => make({ rate: '1/day', table: false, allow, ...who }), error);
      assert.equal(make({ rate: '1/day', table: false, allow: allow.slice(1), ...who }).domain.rules[0].limit, 1);
    }
  });

  it('windowMs and limit make a rule and a warning', async () => {
    const clock = new ManualClock();
    const emitted = await warnings(() => {
      const { domain } = make({ windowMs: 60_000, limit: 100, clock });
      assert.deepEqual(domain.rules, [{ name: 'rule1', limit: 100, windowMs: 60_000 }]);
      make({ windowMs: 60_000, max: 100, clock, validate: { window: false } });
    });
    assert.deepEqual(emitted.map(({ code }) => code), ['DTHROTTLE_WINDOW']);
    assert.match(emitted[0].message, /rate "100 per 60000 ms"/);
  });
});

describe('a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dthrottle-options-'));
  after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'web.toml');

  it('a TOML file is a source', () => {
    writeFileSync(file, 'rate = "10/s"\n[domains.login]\nrate = "5/minute"\n');
    assert.equal(make(file, { table: false }).domain.rules[0].limit, 10);
    assert.equal(make({ file, table: false, domain: 'login' }).domain.rules[0].limit, 5);
    writeFileSync(file, 'rate = "10/s"\ntable = { private = true }\n');
    assert.equal(make(file).domain.rules[0].limit, 10);
    assert.throws(() => make(file, { table: 'web' }), { field: 'table', message: /change it there/ });
    assert.throws(() => make({ file, rate: '1/s' }), { field: 'rate', message: /set it / });
  });

  it('an error in a TOML file names the file', () => {
    writeFileSync(file, 'rate = "10/s"\nbrust = 5\n');
    assert.throws(() => make(file, { table: false }), { code: 'DTHROTTLE_CONFIG', field: 'brust', line: 2, message: /web\.toml: / });
    assert.throws(() => make(join(folder, 'none.toml')), { code: 'DTHROTTLE_FILE' });
  });
});
