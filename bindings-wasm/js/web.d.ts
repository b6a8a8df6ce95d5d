// The public API of dthrottle-wasm on the web: the API of the package dthrottle, and also links and `init`.

export * from './links.js';
export * from './types.js';

/**
 * Loads the WebAssembly module. Await it before all other calls. Further calls do nothing.
 *
 * @param module The module's address (a string or URL), its bytes, a Response or a promise of one, or a
 *   WebAssembly.Module. Default: the file of the package.
 */
export function init(module?: string | object): Promise<void>;

export default init;
