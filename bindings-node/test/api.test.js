// Tests of the public classes with the addon. Also run for WebAssembly.
'use strict';

const { testBusy } = require('./shared/busy.js');
const { testCalls } = require('./shared/calls.js');
const { testClocks } = require('./shared/clocks.js');
const { testCluster } = require('./shared/cluster.js');
const { testConfigs } = require('./shared/configs.js');

const dthrottle = require('../index.js');

testBusy('Node', dthrottle);
testCalls('Node', dthrottle);
testClocks('Node', dthrottle);
testConfigs('Node', dthrottle);
testCluster('Node', dthrottle);
