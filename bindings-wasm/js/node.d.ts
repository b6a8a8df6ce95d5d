// The public API of dthrottle-wasm in Node: that of the package dthrottle, links, and `init`.

export * from './links.js';
export * from './types.js';

/** Does nothing in Node. It exists so that programs for the web run unchanged. */
export function init(module?: string | object): Promise<void>;
