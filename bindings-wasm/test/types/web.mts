// What a TypeScript program may and may not write: loading on the web.
import { init, Throttle } from 'dthrottle-wasm';
import load, { init as sameInit, Throttle as WebThrottle } from 'dthrottle-wasm/web';

const done: Promise<void> = init();
await sameInit(new Uint8Array(3));
await load('https://example.org/dthrottle_bg.wasm');
await load(new URL('dthrottle_bg.wasm', 'https://example.org/'));
new WebThrottle({ rate: '1/s', clock: () => 5 }).allow('tag');
new Throttle('1/s').check('tag').allowed satisfies boolean;
console.log(done);

// @ts-expect-error no number says what to load
await init(5);
// @ts-expect-error a configuration is needed
new WebThrottle();
