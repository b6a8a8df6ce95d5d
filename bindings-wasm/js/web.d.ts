// The public API of dthrottle-wasm on the web: that of dthrottle for Node, links, and `init`.

export * from './links.js';
export * from './types.js';

/**
 * Loads the WebAssembly module. Await it before anything else; once is enough.
 *
 * @param module The module's address (a string or URL), its bytes, a Response or a promise of one,
 *   or a WebAssembly.Module; without it, the file that comes with the package.
 */
export function init(module?: string | object): Promise<void>;

export default init;
