// What a TypeScript program may and may not write: loading on the web.
import { init, Throttle } from 'dthrottle-wasm';
import type { ClusterEvent, Link, LinkOptions } from 'dthrottle-wasm';
import load, { init as sameInit, Throttle as WebThrottle } from 'dthrottle-wasm/web';

const done: Promise<void> = init();
await sameInit(new Uint8Array(3));
await load('https://example.org/dthrottle_bg.wasm');
await load(new URL('dthrottle_bg.wasm', 'https://example.org/'));
new WebThrottle({ rate: '1/s', clock: () => 5 }).allow('tag');
new Throttle('1/s').check('tag').allowed satisfies boolean;
console.log(done);

const options: LinkOptions = { address: '10.0.0.1:7373', seed: 5n, incarnation: 6n };
const link: Link = new Throttle('1/s').link(options);
new WebThrottle('1/s').link({ address: '10.0.0.1:7373', seed: new Uint8Array(8) }).leave();
link.join(['10.0.0.2:7373']);
link.receive('10.0.0.2:7373', new Uint8Array(3));
link.timeout();
const { to, datagram, event, timeoutMs } = link.poll();
const next = link.poll();
if (next.to !== undefined) next.datagram satisfies Uint8Array;
else if (next.event) next.event satisfies ClusterEvent;
else next.timeoutMs satisfies number;
console.log(to === 'group', to?.length, datagram?.length, event?.kind, timeoutMs);

// @ts-expect-error no number says what to load
await init(5);
// @ts-expect-error a configuration is needed
new WebThrottle();
// @ts-expect-error an address is needed
new Throttle('1/s').link({});
// @ts-expect-error a seed is no number
new Throttle('1/s').link({ address: '10.0.0.1:7373', seed: 5 });
// @ts-expect-error a datagram is bytes
link.receive('10.0.0.2:7373', 'text');
// @ts-expect-error only a throttle has a link
new Throttle('1/s').domain('default').link(options);
