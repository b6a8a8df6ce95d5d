// A plugin for Fastify 5.
//
//     await app.register(throttle, { rate: '100/s' });
//     app.get('/login', { config: { throttle: { rate: '5/minute' } } }, handler);
//
// All workers of the application share one table. docs/node.md has the options.
'use strict';

const { DthrottleError } = require('../api/errors.js');
const { isTable } = require('../api/values.js');
const { callHandler, mergeField, setInfo } = require('./connect.js');
const { RefusalError, badValue } = require('./errors.js');
const { onClientLeave, delay, refundAfter } = require('./delay.js');
const { isPromise } = require('./callbacks.js');
const { Middleware } = require('./middleware.js');
const { nodeReader, toPaths } = require('./reader.js');
const { Reports } = require('./validate.js');
const { tools } = require('./tools.js');

/** @import { Outcome } from './delay.js' */
/** @import { Reader } from './reader.js' */

/** The property of a route's config with its middleware, null for a route without limit, and its plugin. */
const MIDDLEWARE = Symbol('dthrottle.middleware');
/** The options of a plugin that Fastify itself reads, and `global`. */
const FASTIFY_OPTIONS = new Set(['prefix', 'logLevel', 'logSerializers', 'global']);
/** The options that give a route its own buckets. */
const SOURCE_OPTIONS = new Set([
  'throttle', 'file', 'rate', 'burst', 'chargeRefused', 'rules', 'domains', 'windowMs', 'limit', 'max', 'domain',
]);
/** The two names of one option. */
const TAG_OPTIONS = ['tag', 'keyGenerator'];

/** @type {Reader} */
const reader = {
  method: (request) => request.method,
  // The option caseSensitive may be false.
  ignoresCase: true,
  paths: (request) => toPaths(request.raw.url),
  header: (request, name) => nodeReader.header(request.raw, name),
  peer: (request) => request.raw.socket?.remoteAddress,
  // Respects Fastify's own option trustProxy.
  client: (request) => request.ip,
  isGone: (request) => nodeReader.isGone(request.raw),
  forwardedFor: (request) => nodeReader.forwardedFor(request.raw),
  trustProxy(request) {
    if (fastifyOptions(request.server)?.trustProxy !== true) return undefined;
    return (
      "trustProxy is true, so a client can send any address: " +
      'set it to the networks of your proxies, or set trustedProxies'
    );
  },
};

/**
 * The options of Fastify itself. They are not public.
 * @param {any} instance
 * @returns {any}
 */
function fastifyOptions(instance) {
  for (let object = instance; object; object = Object.getPrototypeOf(object)) {
    const symbol = Object.getOwnPropertySymbols(object).find((each) => each.description === 'fastify.options');
    if (symbol) return object[symbol];
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
  const { global: isGlobal = true } = options;
  const token = Symbol('dthrottle.plugin');
  if (typeof isGlobal !== 'boolean') throw badValue('global', isGlobal, 'true or false');
  const shared = Object.fromEntries(Object.entries(options).filter(([name]) => !FASTIFY_OPTIONS.has(name)));
  const hasSource = Object.keys(shared).some((name) => SOURCE_OPTIONS.has(name));
  // With `global: false`, each route may have a `tag` of its own, against which `allow` is checked.
  const common = isGlobal || hasSource ? new Middleware(shared, reader, { isComplete: isGlobal }) : null;
  const all = common === null ? [] : [common];
  instance.addHook('onClose', async () => all.forEach((each) => each.close()));
  const property = common?.propertyName ?? String(shared.requestPropertyName ?? 'rateLimit');
  if (!instance.hasRequestDecorator(property)) instance.decorateRequest(property, null);
  if (common !== null && !instance.hasDecorator('throttle')) instance.decorate('throttle', tools(common));

  /**
   * The middleware of a route, null for none, or undefined for that of the plugin.
   * @param {unknown} own The route's `config.throttle`.
   * @param {string} routeName
   * @returns {Middleware | null | undefined}
   */
  function toMiddleware(own, routeName) {
    if (own === undefined) return undefined;
    if (own === false) return null;
    if (own === true && common !== null) {
      common.checkAllow();
      return common;
    }
    const given = typeof own === 'string' || typeof own === 'number' ? { rate: own } : own;
    if (!isTable(given)) throw badValue('config.throttle', own, 'an object of options, a rate, or false');
    const isOwn = Object.keys(given).some((key) => SOURCE_OPTIONS.has(key));
    // A tag of the route, by either name, replaces that of the plugin.
    const hasTag = TAG_OPTIONS.some((key) => (given[key] ?? null) !== null);
    const isInherited = (/** @type {string} */ key) =>
      !(isOwn && SOURCE_OPTIONS.has(key)) && !(hasTag && TAG_OPTIONS.includes(key));
    const rest = Object.fromEntries(Object.entries(shared).filter(([key]) => isInherited(key)));
    // Without rules of its own, a route shares the buckets of the plugin.
    const within = isOwn ? undefined : (common ?? undefined);
    const domain = within !== undefined && shared.throttle === undefined ? { domain: within.domainName } : {};
    const middleware = new Middleware({ ...rest, ...given, ...domain }, reader, { namePart: isOwn ? routeName : undefined, within });
    all.push(middleware);
    return middleware;
  }

  /** @type {Map<string, { own: unknown, middleware: Middleware | null | undefined }>} */
  const routes = new Map();
  instance.addHook('onRoute', (/** @type {any} */ route) => {
    const own = route.config?.throttle;
    const name = toRouteName(route.method, route.url);
    // Fastify calls the hook again for the HEAD route of a GET route.
    const last = routes.get(name);
    const middleware = last?.own === own ? last?.middleware : withRouteName(name, () => toMiddleware(own, name));
    routes.set(name, { own, middleware });
    if (middleware !== undefined) route.config = { ...route.config, [MIDDLEWARE]: { middleware, plugin: token } };
  });

  instance.addHook('onRequest', (/** @type {any} */ request, /** @type {any} */ reply, /** @type {() => void} */ next) => {
    const { config } = request.routeOptions;
    const own = config?.[MIDDLEWARE] ?? (config?.throttle === undefined ? undefined : addLateRoute(config));
    // If the plugin is registered several times, the one nearest to the route decides.
    const isOfOther = own !== undefined && own.plugin !== token;
    const chosen = own === undefined && isGlobal ? common : (own?.middleware ?? null);
    if (isOfOther || chosen === null) next();
    else decide(chosen, request, reply, next);
  });

  /**
   * Adds the middleware of a route that was added before the plugin was loaded.
   * @param {any} config
   */
  function addLateRoute(config) {
    const { throttle: own, method, url } = config;
    /** @type {Middleware | null | undefined} */
    let middleware = common;
    try {
      middleware = toMiddleware(own, toRouteName(method, url));
    } catch (error) {
      new Reports().failed(`config.throttle of ${url}`, error);
    }
    config[MIDDLEWARE] = { middleware, plugin: token };
    return config[MIDDLEWARE];
  }
}

/**
 * Adds the name of a route to errors.
 * @template T
 * @param {string} routeName
 * @param {() => T} make
 */
function withRouteName(routeName, make) {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof DthrottleError)) throw error;
    throw new DthrottleError(error.code, `${routeName}: ${error.message}`, { field: error.field, line: error.line });
  }
}

/**
 * The name of a route. HEAD counts as GET, because Fastify answers HEAD by the route for GET.
 * @param {string | string[]} method
 * @param {string} url
 */
function toRouteName(method, url) {
  const methods = new Set([method].flat().map((each) => (each === 'HEAD' ? 'GET' : each)));
  return [...methods, url].join(' ');
}

/**
 * @param {Middleware} middleware
 * @param {any} request
 * @param {any} reply
 * @param {() => void} next
 */
function decide(middleware, request, reply, next) {
  const outcome = middleware.decide(request, reply);
  if (isPromise(outcome)) outcome.then((settled) => act(middleware, settled, request, reply, next));
  else act(middleware, outcome, request, reply, next);
}

/**
 * @param {Middleware} middleware
 * @param {Outcome | null} outcome
 * @param {any} request
 * @param {any} reply
 * @param {() => void} next
 */
function act(middleware, outcome, request, reply, next) {
  if (outcome === null) {
    next();
    return;
  }
  setInfo(middleware, request, outcome);
  middleware.callOnRefused(outcome, request, reply);
  delay(middleware, outcome, onClientLeave(reply.raw), (isHere) => {
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
    callHandler(() => handler(request, reply, next, refused), next);
    return;
  }
  const refusal = middleware.refusal(outcome, request, reply);
  if (isPromise(refusal)) refusal.then((settled) => send(middleware, outcome, settled, reply, next));
  else send(middleware, outcome, refusal, reply, next);
}

/**
 * Sends the body of the application, or passes an error to Fastify's error handlers.
 * @param {Middleware} middleware
 * @param {Outcome} outcome
 * @param {{ status: number, names: string[], values: string[], body: Uint8Array, isDefault: boolean }} refusal
 * @param {any} reply
 * @param {(error?: unknown) => void} next
 */
function send(middleware, outcome, { status, names, values, body, isDefault }, reply, next) {
  if (reply.sent) return;
  write(middleware, reply, names, values);
  // For error handlers that set no status.
  reply.code(status);
  if (isDefault) next(new RefusalError(status, outcome.decision));
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
    reply.header(names[i], mergeField(middleware.isList, names[i], reply.getHeader(names[i]), values[i]));
  }
}

// The hooks apply to the whole application, not only to the plugin.
Object.assign(throttle, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'dthrottle',
  [Symbol.for('plugin-meta')]: { name: 'dthrottle', fastify: '5.x' },
});

// Supports `import throttle` and `import { throttle }`. Node finds the named export in the last line.
// @ts-expect-error TypeScript does not support a function with properties as a module.
module.exports = Object.assign(throttle, { default: throttle });
Object.defineProperty(module.exports, 'throttle', { enumerable: true, value: throttle });
