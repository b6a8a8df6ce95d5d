// Runs the vectors and the tests of the public classes with both builds.
import busy from '../../bindings-node/test/shared/busy.js';
import calls from '../../bindings-node/test/shared/calls.js';
import clocks from '../../bindings-node/test/shared/clocks.js';
import cluster from '../../bindings-node/test/shared/cluster.js';
import configs from '../../bindings-node/test/shared/configs.js';
import vectors from '../../bindings-node/test/shared/vectors.js';
import builds from './builds.js';

const web = await builds.loadWeb();

for (const [label, dthrottle] of Object.entries({ 'WASM for Node': builds.node, 'WASM for the web': web })) {
  vectors.testVectors(label, dthrottle, 'wasm');
  busy.testBusy(label, dthrottle);
  calls.testCalls(label, dthrottle);
  clocks.testClocks(label, dthrottle);
  configs.testConfigs(label, dthrottle);
  cluster.testCluster(label, dthrottle);
}
