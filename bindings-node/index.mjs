// dthrottle for Node, as an ES module. It exports the classes that require() returns.
import dthrottle from './index.js';

export const { BusyThrottle, Domain, DthrottleError, ManualClock, Throttle, UNLIMITED } = dthrottle;
export default dthrottle;
