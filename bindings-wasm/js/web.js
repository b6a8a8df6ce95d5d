// dthrottle in WebAssembly for the web, as an ES module. It is ready when `init` is.
import { adapt } from './adapt.js';
import * as glue from './dthrottle.js';
import { badArgument } from './api/errors.js';
import { makeApi } from './api/index.js';
import { linksOf } from './link.js';

let ready = false;

/**
 * Loads the WebAssembly module.
 * @param {string | object} [module] Its address, its bytes, a Response or a WebAssembly.Module;
 *   without it, the file beside this one.
 * @returns {Promise<void>}
 */
export async function init(module) {
  const source = /** @type {import('./dthrottle.js').InitInput} */ (module);
  const exports = await glue.default(module === undefined ? undefined : { module_or_path: source });
  if (typeof exports.newClock !== 'function') {
    throw badArgument('what init() loaded is not the module of this version; load the page again');
  }
  ready = true;
}

const native = adapt(glue);

export const { BusyThrottle, Domain, DthrottleError, ManualClock, Throttle, UNLIMITED } = makeApi(
  {
    ...native,
    // Whatever one makes begins with a clock.
    newClock(followsHost) {
      if (!ready) throw badArgument('dthrottle is not loaded yet: first, await init()');
      return native.newClock(followsHost);
    },
  },
  () => performance.now(),
  linksOf(glue),
);

export default init;
