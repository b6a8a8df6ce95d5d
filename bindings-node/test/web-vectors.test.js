// Runs the vectors of HTTP middleware: decisions, and responses of every framework.
'use strict';

const dthrottle = require('../index.js');
const { kinds } = require('./shared/web.js');
const { testDecisions, testResponses } = require('./shared/web-vectors.js');

testDecisions('Node', dthrottle, true);
for (const kind of kinds) testResponses('Node', dthrottle, kind, true);
