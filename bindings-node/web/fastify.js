// A plugin for Fastify 5.
//
//     await app.register(throttle, { rate: '100/s' });
//     app.get('/login', { config: { throttle: { rate: '5/minute' } } }, handler);
//
// All workers of the application count together, without being told. docs/node.md has the options.
'use strict';

const { DthrottleError } = require('../api/errors.js');
const { isTable } = require('../api/values.js');
const { handle, inform, joined } = require('./connect.js');
const { RefusalError, wrong } = require('./errors.js');
const { closing, delay, refundAfter } = require('./delay.js');
const { isPromise } = require('./callbacks.js');
const { Middleware } = require('./middleware.js');
const { nodeReader, toPaths } = require('./reader.js');
const { Reports } = require('./validate.js');
const { tools } = require('./tools.js');

/** @import { Outcome } from './delay.js' */
/** @import { Reader } from './middleware.js' */

/** Where a route keeps its middleware, null for a route that is not throttled, and which plugin asks it. */
const MIDDLEWARE = Symbol('dthrottle.middleware');
/** What Fastify itself takes from the options of a plugin. */
const OF_FASTIFY = new Set(['prefix', 'logLevel', 'logSerializers', 'global']);
/** What makes a route's buckets its own. */
const OWN = new Set([
  'throttle', 'file', 'rate', 'burst', 'chargeRefused', 'rules', 'domains', 'windowMs', 'limit', 'max', 'domain',
]);
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
  const hasSource = Object.keys(shared).some((name) => OWN.has(name));
  // Where only routes ask, each may have tags of its own.
  const common = everywhere || hasSource ? new Middleware(shared, reader, { isComplete: everywhere }) : null;
  const all = common === null ? [] : [common];
  instance.addHook('onClose', async () => all.forEach((each) => each.close()));
  const name = common?.propertyName ?? String(shared.requestPropertyName ?? 'rateLimit');
  if (!instance.hasRequestDecorator(name)) instance.decorateRequest(name, null);
  if (common !== null && !instance.hasDecorator('throttle')) instance.decorate('throttle', tools(common));

  /**
   * The middleware of a route; undefined: the route says nothing.
   * @param {unknown} own What its configuration says.
   * @param {string} place
   * @returns {Middleware | null | undefined}
   */
  function toMiddleware(own, place) {
    if (own === undefined) return undefined;
    if (own === false) return null;
    if (own === true && common !== null) {
      common.checkAllow();
      return common;
    }
    const given = typeof own === 'string' || typeof own === 'number' ? { rate: own } : own;
    if (!isTable(given)) throw wrong('config.throttle', own, 'an object of options, a rate, or false');
    const isOwn = Object.keys(given).some((key) => OWN.has(key));
    // Only one of two names for an option: that of the route.
    const hasTag = TAGS.some((key) => (given[key] ?? null) !== null);
    const goes = (/** @type {string} */ key) => !(isOwn && OWN.has(key)) && !(hasTag && TAGS.includes(key));
    const rest = Object.fromEntries(Object.entries(shared).filter(([key]) => goes(key)));
    // Without rules of its own, a route counts with all others.
    const within = isOwn ? undefined : (common ?? undefined);
    const domain = within !== undefined && shared.throttle === undefined ? { domain: within.domainName } : {};
    const made = new Middleware({ ...rest, ...given, ...domain }, reader, { place: isOwn ? place : undefined, within });
    all.push(made);
    return made;
  }

  /** @type {Map<string, { said: unknown, made: Middleware | null | undefined }>} */
  const routes = new Map();
  instance.addHook('onRoute', (/** @type {any} */ route) => {
    const said = route.config?.throttle;
    const place = toPlace(route.method, route.url);
    const known = routes.get(place);
    const made = known?.said === said ? known?.made : inRoute(place, () => toMiddleware(said, place));
    routes.set(place, { said, made });
    if (made !== undefined) route.config = { ...route.config, [MIDDLEWARE]: { made, of: token } };
  });

  instance.addHook('onRequest', (/** @type {any} */ request, /** @type {any} */ reply, /** @type {() => void} */ next) => {
    const { config } = request.routeOptions;
    const own = config?.[MIDDLEWARE] ?? (config?.throttle === undefined ? undefined : late(config));
    // Where the plugin is there several times, the nearest to the route asks about it.
    const others = own !== undefined && own.of !== token;
    const chosen = own === undefined && everywhere ? common : (own?.made ?? null);
    if (others || chosen === null) next();
    else ask(chosen, request, reply, next);
  });

  /**
   * The middleware of a route that was there before the plugin, which may not have been waited for.
   * @param {any} config
   */
  function late(config) {
    const { throttle: said, method, url } = config;
    /** @type {Middleware | null | undefined} */
    let made = common;
    try {
      made = toMiddleware(said, toPlace(method, url));
    } catch (error) {
      new Reports().failed(`config.throttle of ${url}`, error);
    }
    config[MIDDLEWARE] = { made, of: token };
    return config[MIDDLEWARE];
  }
}

/**
 * What is wrong at a route says which it is.
 * @template T
 * @param {string} place
 * @param {() => T} make
 */
function inRoute(place, make) {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof DthrottleError)) throw error;
    throw new DthrottleError(error.code, `${place}: ${error.message}`, { field: error.field, line: error.line });
  }
}

/**
 * What tells a route from others. Fastify answers HEAD by the route for GET: they count together.
 * @param {string | string[]} method
 * @param {string} url
 */
function toPlace(method, url) {
  const methods = new Set([method].flat().map((each) => (each === 'HEAD' ? 'GET' : each)));
  return [...methods, url].join(' ');
}

/**
 * @param {Middleware} middleware
 * @param {any} request
 * @param {any} reply
 * @param {() => void} next
 */
function ask(middleware, request, reply, next) {
  const outcome = middleware.decide(request, reply);
  if (isPromise(outcome)) outcome.then((settled) => go(middleware, settled, request, reply, next));
  else go(middleware, outcome, request, reply, next);
}

/**
 * @param {Middleware} middleware
 * @param {Outcome | null} outcome
 * @param {any} request
 * @param {any} reply
 * @param {() => void} next
 */
function go(middleware, outcome, request, reply, next) {
  if (outcome === null) {
    next();
    return;
  }
  inform(middleware, request, outcome);
  middleware.tell(outcome, request, reply);
  delay(middleware, outcome, closing(reply.raw), (isHere) => {
    if (outcome.refused) {
      refuse(middleware, outcome, request, reply, next);
    } else if (isHere) {
      write(middleware, reply, middleware.fieldNames, outcome.values);
      refundAfter(middleware, outcome, reply.raw, request, reply);
      next();
    } else {
      reply.hijack();
    }
  });
}

/**
 * @param {Middleware} middleware
 * @param {Outcome} outcome
 * @param {any} request
 * @param {any} reply
 * @param {(error?: unknown) => void} next
 */
function refuse(middleware, outcome, request, reply, next) {
  const { handler } = middleware;
  if (handler !== null) {
    const { names, values, refused } = middleware.refused(outcome);
    write(middleware, reply, names, values);
    handle(() => handler(request, reply, next, refused), next);
    return;
  }
  const refusal = middleware.refusal(outcome, request, reply);
  if (isPromise(refusal)) refusal.then((settled) => send(middleware, outcome, settled, reply, next));
  else send(middleware, outcome, refusal, reply, next);
}

/**
 * Answers with the body that the application says, or leaves that to Fastify's error handler.
 * @param {Middleware} middleware
 * @param {Outcome} outcome
 * @param {{ status: number, names: string[], values: string[], body: Uint8Array, isUsual: boolean }} refusal
 * @param {any} reply
 * @param {(error?: unknown) => void} next
 */
function send(middleware, outcome, { status, names, values, body, isUsual }, reply, next) {
  if (reply.sent) return;
  write(middleware, reply, names, values);
  // Also for an error handler that sets no status.
  reply.code(status);
  if (isUsual) next(new RefusalError(status, outcome.decision));
  else reply.send(Buffer.from(body));
}

/**
 * @param {Middleware} middleware
 * @param {any} reply
 * @param {readonly string[]} names
 * @param {readonly string[]} values
 */
function write(middleware, reply, names, values) {
  for (let i = 0; i < values.length; i += 1) {
    reply.header(names[i], joined(middleware.isList, names[i], reply.getHeader(names[i]), values[i]));
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
