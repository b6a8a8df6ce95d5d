// Both forms of import in a CommonJS module in TypeScript.
import dthrottle = require('dthrottle');
import { Throttle } from 'dthrottle';
import type { Decision } from 'dthrottle';

const throttle: dthrottle.Throttle = new Throttle({ rate: '1/s', clock: new dthrottle.ManualClock() });
const decision: Decision = throttle.check('tag');
const limit: number = dthrottle.UNLIMITED;
console.log(decision.resetAfterMs, limit, throttle instanceof dthrottle.Domain);

// @ts-expect-error the rate is missing
new dthrottle.Throttle();
// @ts-expect-error no such member
console.log(dthrottle.Limiter);
