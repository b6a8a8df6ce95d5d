// A plugin for Fastify 5.
//
//     await app.register(throttle, { rate: '100/s' });
//     app.get('/login', { config: { throttle: { rate: '5/minute' } } }, handler);
//
// All workers of the application count together, without being told. docs/node.md has the options.
'use strict';

const { DthrottleError } = require('../face/errors.js');
const { isTable } = require('../face/values.js');
const { tools } = require('./connect.js');
const { Gate, isPromise } = require('./gate.js');
const { joined } = require('./headers.js');
const { closing, hold, refundAfter, slow } = require('./hold.js');
const { wrong } = require('./near.js');
const { judgeAllow, readOptions } = require('./options.js');
const { nodeReader, toPaths } = require('./reader.js');
const { handle, refusalFields, toRefusal } = require('./refusal.js');
const { SOURCES } = require('./source.js');
const { Reports } = require('./validate.js');

/** @import { Reader } from './gate.js' */
/** @import { Verdict } from './verdict.js' */

/** Where a route keeps its gate, null for a route that is not throttled, and which plugin asks it. */
const GATE = Symbol('dthrottle.gate');
/** What Fastify itself takes from the options of a plugin. */
const OF_FASTIFY = new Set(['prefix', 'logLevel', 'logSerializers', 'global']);
/** What makes a route's bucket its own. */
const OWN = new Set([...SOURCES, 'domain', 'table']);
/** Where buckets are is the same for all routes. */
const PLACE = new Set(['table', 'cluster', 'clock']);
/** Two names for one option. */
const TAGS = ['tag', 'keyGenerator'];

/** @type {Reader} */
const reader = {
  method: (request) => request.method,
  // It may be told to.
  ignoresCase: true,
  paths: (request) => toPaths(request.raw.url),
  header: (request, name) => nodeReader.header(request.raw, name),
  peer: (request) => request.raw.socket?.remoteAddress,
  // By Fastify's own trustProxy, where that is set.
  client: (request) => request.ip,
  isGone: (request) => nodeReader.isGone(request.raw),
  forwardedFor: (request) => nodeReader.forwardedFor(request.raw),
  trustProxy(request) {
    if (fastifyOptions(request.server)?.trustProxy !== true) return undefined;
    return (
      "trustProxy is true, so the client's address is what the client says it is: " +
      'set it to the networks of your proxies, or set trustedProxies'
    );
  },
};

/**
 * The options that Fastify was made with. They are not public.
 * @param {any} instance
 * @returns {any}
 */
function fastifyOptions(instance) {
  for (let it = instance; it; it = Object.getPrototypeOf(it)) {
    const symbol = Object.getOwnPropertySymbols(it).find((each) => each.description === 'fastify.options');
    if (symbol) return it[symbol];
  }
  return undefined;
}

/**
 * @param {any} instance
 * @param {Record<string, unknown>} options
 * @param {(error?: Error) => void} done
 */
function throttle(instance, options, done) {
  try {
    register(instance, options);
  } catch (error) {
    done(/** @type {Error} */ (error));
    return;
  }
  done();
}

/**
 * @param {any} instance
 * @param {Record<string, unknown>} options
 */
function register(instance, options) {
  const { global: everywhere = true } = options;
  const token = Symbol('dthrottle.plugin');
  if (typeof everywhere !== 'boolean') throw wrong('global', everywhere, 'true or false');
  const shared = Object.fromEntries(Object.entries(options).filter(([name]) => !OF_FASTIFY.has(name)));
  const sourced = Object.keys(shared).some((name) => OWN.has(name) && !PLACE.has(name));
  // Where only routes ask, each may have tags of its own.
  const gate = everywhere || sourced ? new Gate(readOptions(shared, { tagsLater: !everywhere }), reader) : null;
  /** @type {Gate[]} */
  const gates = gate === null ? [] : [gate];
  instance.addHook('onClose', async () => gates.forEach((each) => each.close()));
  const name = gate?.settings.requestPropertyName ?? String(shared.requestPropertyName ?? 'rateLimit');
  if (!instance.hasRequestDecorator(name)) instance.decorateRequest(name, null);
  if (gate !== null && !instance.hasDecorator('throttle')) instance.decorate('throttle', tools(gate));

  /**
   * The gate of a route; undefined: it says nothing.
   * @param {unknown} own What its configuration says.
   * @param {string} where
   * @returns {Gate | null | undefined}
   */
  function toGate(own, where) {
    if (own === undefined) return undefined;
    if (own === false) return null;
    if (own === true && gate !== null) {
      judgeAllow(gate.settings);
      return gate;
    }
    const given = typeof own === 'string' || typeof own === 'number' ? { rate: own } : own;
    if (!isTable(given)) throw wrong('config.throttle', own, 'an object of options, a rate, or false');
    const ownSource = Object.keys(given).some((key) => OWN.has(key) && !PLACE.has(key));
    // By whichever name: the route's is meant, not both.
    const ownTag = TAGS.some((key) => (given[key] ?? null) !== null);
    const goes = (/** @type {string} */ key) => (OWN.has(key) ? ownSource && PLACE.has(key) : !(ownTag && TAGS.includes(key)));
    const rest = Object.fromEntries(Object.entries(shared).filter(([key]) => goes(key)));
    // Without rules of its own, a route counts with all others.
    const inherited = ownSource ? undefined : gate?.settings.opened;
    const made = new Gate(readOptions({ ...rest, ...given }, { where, inherited }), reader);
    gates.push(made);
    return made;
  }

  /** @type {Map<string, { said: unknown, made: Gate | null | undefined }>} */
  const routes = new Map();
  instance.addHook('onRoute', (/** @type {any} */ route) => {
    const said = route.config?.throttle;
    const where = toWhere(route.method, route.url);
    const known = routes.get(where);
    const made = known?.said === said ? known?.made : inRoute(where, () => toGate(said, where));
    routes.set(where, { said, made });
    if (made !== undefined) route.config = { ...route.config, [GATE]: { made, of: token } };
  });

  instance.addHook('onRequest', (/** @type {any} */ request, /** @type {any} */ reply, /** @type {() => void} */ next) => {
    const { config } = request.routeOptions;
    const own = config?.[GATE] ?? (config?.throttle === undefined ? undefined : late(config));
    // Where the plugin is there several times, the nearest to the route asks about it.
    const others = own !== undefined && own.of !== token;
    const chosen = own === undefined && everywhere ? gate : (own?.made ?? null);
    if (others || chosen === null) next();
    else ask(chosen, request, reply, next);
  });

  /**
   * The gate of a route that was there before the plugin, which may not have been waited for.
   * @param {any} config
   */
  function late(config) {
    const { throttle: said, method, url } = config;
    /** @type {Gate | null | undefined} */
    let made = gate;
    try {
      made = toGate(said, toWhere(method, url));
    } catch (error) {
      new Reports(new Set()).failure('DTHROTTLE_FAILED', 'config', `config.throttle of ${url} failed: ${/** @type {Error} */ (error).message}`, error);
    }
    config[GATE] = { made, of: token };
    return config[GATE];
  }
}

/**
 * What is wrong at a route says which it is.
 * @template T
 * @param {string} where
 * @param {() => T} make
 */
function inRoute(where, make) {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof DthrottleError)) throw error;
    throw new DthrottleError(error.code, `${where}: ${error.message}`, { field: error.field, line: error.line });
  }
}

/**
 * What the gate of a route is for. Fastify answers HEAD by the route for GET: they count together.
 * @param {string | string[]} method
 * @param {string} url
 */
function toWhere(method, url) {
  const methods = new Set([method].flat().map((each) => (each === 'HEAD' ? 'GET' : each)));
  return [...methods, url].join(' ');
}

/**
 * @param {Gate} gate
 * @param {any} request
 * @param {any} reply
 * @param {() => void} next
 */
function ask(gate, request, reply, next) {
  const verdict = gate.ask(request, reply);
  if (isPromise(verdict)) verdict.then((settled) => go(gate, settled, request, reply, next));
  else go(gate, verdict, request, reply, next);
}

/**
 * @param {Gate} gate
 * @param {Verdict | null} verdict
 * @param {any} request
 * @param {any} reply
 * @param {() => void} next
 */
function go(gate, verdict, request, reply, next) {
  if (verdict === null) {
    next();
    return;
  }
  gate.inform(request, verdict);
  gate.tell(verdict, request, reply);
  const pass = () => {
    write(gate, reply, verdict.fields);
    refundAfter(gate, verdict, reply.raw, request, reply);
    next();
  };
  if (verdict.refused) slow(gate, closing(reply.raw), () => refuse(gate, verdict, request, reply, next));
  else if (verdict.waitMs > 0) hold(gate, verdict, closing(reply.raw), (here) => (here ? pass() : reply.hijack()));
  else pass();
}

/**
 * @param {Gate} gate
 * @param {Verdict} verdict
 * @param {any} request
 * @param {any} reply
 * @param {(error?: unknown) => void} next
 */
function refuse(gate, verdict, request, reply, next) {
  const { handler } = gate.settings;
  if (handler !== null) {
    write(gate, reply, refusalFields(verdict));
    handle(gate, handler, verdict, request, reply, next);
    return;
  }
  const said = gate.said(verdict, request, reply);
  if (isPromise(said)) said.then((settled) => send(gate, verdict, settled, reply));
  else send(gate, verdict, said, reply);
}

/**
 * @param {Gate} gate
 * @param {Verdict} verdict
 * @param {unknown} message
 * @param {any} reply
 */
function send(gate, verdict, message, reply) {
  if (reply.sent) return;
  const { status, fields, body } = toRefusal(gate, verdict, message);
  write(gate, reply, fields);
  reply.code(status).send(typeof body === 'string' ? body : Buffer.from(body));
}

/**
 * @param {Gate} gate
 * @param {any} reply
 * @param {string[]} fields
 */
function write(gate, reply, fields) {
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i];
    reply.header(name, joined(gate.isList, name, reply.getHeader(name), fields[i + 1]));
  }
}

// The hooks are for the whole application, not for the plugin alone.
Object.assign(throttle, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'dthrottle',
  [Symbol.for('plugin-meta')]: { name: 'dthrottle', fastify: '5.x' },
});

// As plugins of Fastify are: `app.register(require('dthrottle/fastify'))`. The last line shows `import`
// the name.
// @ts-expect-error A function with names besides is nothing that TypeScript lets a module be.
module.exports = Object.assign(throttle, { default: throttle });
Object.defineProperty(module.exports, 'throttle', { enumerable: true, value: throttle });
