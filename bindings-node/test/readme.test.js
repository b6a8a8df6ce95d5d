// The code blocks of README.md.
'use strict';

const { join } = require('node:path');

const { testReadme } = require('./shared/readme.js');

testReadme(join(__dirname, '../README.md'), 'dthrottle', join(__dirname, '..'), ['express']);
