// Runs the vectors of HTTP middleware with the WebAssembly module.
import fields from '../../bindings-node/test/shared/fields.js';
import shared from '../../bindings-node/test/shared/web-vectors.js';
import builds from './builds.js';

const web = await builds.loadWeb();

shared.testDecisions('WASM for Node', builds.node);
shared.testDecisions('WASM for the web', web);
shared.testResponses('WASM for Node', builds.node, 'Express 5');

fields.testFields('WASM for Node', builds.node);
fields.testFields('WASM for the web', web);
