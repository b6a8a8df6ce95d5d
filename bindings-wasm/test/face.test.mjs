// The vectors and the public classes, through both builds: the tests are those of Node.
import busy from '../../bindings-node/test/shared/busy.js';
import calls from '../../bindings-node/test/shared/calls.js';
import clocks from '../../bindings-node/test/shared/clocks.js';
import cluster from '../../bindings-node/test/shared/cluster.js';
import configs from '../../bindings-node/test/shared/configs.js';
import vectors from '../../bindings-node/test/shared/vectors.js';
import builds from './builds.js';

const web = await builds.loadWeb();

for (const [label, face] of Object.entries({ 'WASM for Node': builds.node, 'WASM for the web': web })) {
  vectors.testVectors(label, face, 'wasm');
  busy.testBusy(label, face);
  calls.testCalls(label, face);
  clocks.testClocks(label, face);
  configs.testConfigs(label, face);
  cluster.testCluster(label, face);
}
