// What compiles and what does not, in an ES module in TypeScript.
import { BusyThrottle, Domain, DthrottleError, ManualClock, Throttle, UNLIMITED } from 'dthrottle';
import type { CheckOptions, ClusterEvent, ClusterOptions, ClusterStats } from 'dthrottle';
import type { Decision, ErrorCode, PeerStats, Stats, TableOptions, ThrottleOptions, Turn } from 'dthrottle';

const clock: ManualClock = new ManualClock(5);
const options: ThrottleOptions = {
  rules: [{ name: 'second', rate: '10/s', burst: '2s', chargeRefused: true }, { rate: 5 }],
  dryRun: false,
  domains: { api: { rate: 100, burst: 200 }, free: {}, other: { rules: [], dryRun: true } },
  clock,
};
const throttle: Throttle = new Throttle(options);
new Throttle('100/s');
new Throttle(100);
new Throttle({ rate: 1, table: 'web' });
const table: TableOptions = { name: 'web', size: '64 MB', group: 33, dir: '/run', private: false };
new Throttle({ rate: 1, table });
const cluster: ClusterOptions = { name: 'web', secret: { file: 'secret' }, peers: ['10.0.0.1'] };
new Throttle({ rate: 1, cluster: { ...cluster, packetKeys: [], retentionBytes: '16 MB' } });
new Throttle({ rate: '1/s', clock: () => performance.now() });
Throttle.fromToml('rate = 1', { clock });
const fromFile: Throttle = Throttle.fromFile('dthrottle.toml');

const checkOptions: CheckOptions = { cost: 2, maxDelayMs: 50, partial: true };
const decision: Decision = throttle.check('tag', checkOptions);
const rule: string | null = decision.rule;
const wait: number = throttle.peek(new Uint8Array(3), 4).delayMs;
const yes: boolean = throttle.allow('tag', 3);
const many: boolean[] = throttle.allowMany(['tag', new Uint8Array(3)]);
const domain: Domain = throttle.domain('api');
const limits: number[] = domain.rules.map(({ limit }) => limit);
const stats: Stats = throttle.stats();
throttle.start();
const inCluster: ClusterStats | null = throttle.clusterStats();
const peers: PeerStats[] = inCluster?.peers ?? [];
const addresses: (string | null)[] = peers.filter(({ state }) => state === 'up').map(({ address }) => address);
const events: ClusterEvent[] = throttle.events();
const later: number[] = throttle.events(events.at(-1)?.number).map(({ ageMs }) => ageMs);
const lost: number | undefined = inCluster?.counts.reportsLost;
domain.refund('tag');
domain.reset('tag');
domain.chargeLocal('tag', 3, 10);
const debtMs: number = domain.charge('tag', 3);
console.log(debtMs);
clock.advance(5);
clock.set(clock.now() + UNLIMITED);
throttle.close();

declare const caught: unknown;
if (caught instanceof DthrottleError) {
  const code: ErrorCode = caught.code;
  const line: number | undefined = caught.line;
  const field: string | undefined = caught.field;
  console.log(code, line, field, caught.message);
}
console.log(fromFile, rule, wait, yes, limits, many, stats.evicted, stats.unreported);
console.log(addresses, later, lost);

// @ts-expect-error a configuration is needed
new Throttle();
// @ts-expect-error an unknown key
new Throttle({ rat: '1/s' });
// @ts-expect-error the key of Python
new Throttle({ rate: 1, dry_run: true });
// @ts-expect-error a rule needs a rate
new Throttle({ rules: [{ burst: 3 }] });
// @ts-expect-error an unknown key of a table
new Throttle({ rate: 1, table: { names: 'web' } });
// @ts-expect-error a clock is no number
new Throttle({ rate: 1, clock: 5 });
const busy = new BusyThrottle({ floor: 2, maxPause: '1m', clock: new ManualClock() });
const turn: Turn = busy.turn('api');
if (!busy.shouldSend('api')) console.log(turn.waitMs);
busy.onBusy('api', 1000);
busy.close();
// @ts-expect-error no such mode
new BusyThrottle({ mode: 'dead' });
// @ts-expect-error a domain comes from a throttle
new Domain();
// @ts-expect-error an unknown option
throttle.check('tag', { costs: 1 });
// @ts-expect-error a cost is a number
throttle.check('tag', '1');
// @ts-expect-error options are for check and peek
throttle.allow('tag', { cost: 1 });
// @ts-expect-error a tag is text or bytes
throttle.check(5);
// @ts-expect-error hits are needed
throttle.chargeLocal('tag');
// @ts-expect-error the field of another language
console.log(decision.retry_after);
// @ts-expect-error only a throttle has domains
domain.domain('x');
// @ts-expect-error only a throttle can be closed
domain.close();
// @ts-expect-error only a throttle has a cluster
domain.clusterStats();
// @ts-expect-error there may be no cluster
throttle.clusterStats().peers;
// @ts-expect-error a node is text
const number: number = peers[0].node;
// @ts-expect-error no such state
peers[0].state === 'gone';
// @ts-expect-error names do not change
domain.name = 'x';
// @ts-expect-error no such export
import { Limiter } from 'dthrottle';
