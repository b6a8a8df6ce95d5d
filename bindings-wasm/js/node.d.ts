// The public API of dthrottle-wasm in Node: that of dthrottle for Node, links, and `init`.

export * from './links.js';
export * from './types.js';

/** Does nothing: it is here so that a program for the web runs as it is. */
export function init(module?: string | object): Promise<void>;
