// dthrottle in WebAssembly for Node, as an ES module. The classes are those that require() gives.
import dthrottle from './index.js';

export const { BusyThrottle, Domain, DthrottleError, ManualClock, Throttle, UNLIMITED, init } = dthrottle;
