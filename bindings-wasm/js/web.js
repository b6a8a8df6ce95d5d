// dthrottle in WebAssembly for the web, as an ES module. It works after `init`.
import { adapt } from './adapt.js';
import * as glue from './dthrottle.js';
import { badArgument } from './api/errors.js';
import { makeApi } from './api/index.js';
import { makeAddLink } from './link.js';

let ready = false;

/**
 * Loads the WebAssembly module.
 * @param {string | object} [module] Its address, its bytes, a Response or a WebAssembly.Module. Default: the file
 *   beside this one.
 * @returns {Promise<void>}
 */
export async function init(module) {
  const source = /** @type {import('./dthrottle.js').InitInput} */ (module);
  const exports = await glue.default(module === undefined ? undefined : { module_or_path: source });
  if (typeof exports.newClock !== 'function') {
    throw badArgument('init() loaded the module of another version; reload the page');
  }
  ready = true;
}

const native = adapt(glue);

export const { BusyThrottle, Domain, DthrottleError, ManualClock, Throttle, UNLIMITED } = makeApi(
  {
    ...native,
    // Every constructor creates a clock, so this check reports a missing init() for all classes.
    newClock(followsHost) {
      if (!ready) throw badArgument('dthrottle is not loaded yet; call await init() first');
      return native.newClock(followsHost);
    },
  },
  () => performance.now(),
  makeAddLink(glue),
);

export default init;
