// HTTP middleware, by the vectors of all languages: decisions, and the responses of every framework.
'use strict';

const face = require('../index.js');
const { kinds } = require('./shared/web.js');
const { testDecisions, testResponses } = require('./shared/web-vectors.js');

testDecisions('Node', face, true);
for (const kind of kinds) testResponses('Node', face, kind, true);
