import * as dthrottle from './index.js';

export * from './index.js';
/** All exports in one object, as `require('dthrottle')` returns them. */
export default dthrottle;
