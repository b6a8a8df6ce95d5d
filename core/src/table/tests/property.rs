//! Where nothing has to be forgotten, a table is a map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Act {
    Wait(u64),
    Charge { tag: u8, rule: bool, units: u64 },
    Refund { tag: u8, rule: bool, units: u64 },
    Reset { tag: u8 },
    Read { tag: u8, rule: bool },
}

fn acts() -> impl Strategy<Value = Act> {
    let (tag, rule, units) = (0_u8..24, any::<bool>(), 0_u64..15);
    prop_oneof![
        (0..3 * SECOND).prop_map(Act::Wait),
        (tag.clone(), rule, units.clone()).prop_map(|(tag, rule, units)| Act::Charge {
            tag,
            rule,
            units
        }),
        (tag.clone(), rule, units).prop_map(|(tag, rule, units)| Act::Refund { tag, rule, units }),
        tag.clone().prop_map(|tag| Act::Reset { tag }),
        (tag, rule).prop_map(|(tag, rule)| Act::Read { tag, rule }),
    ]
}

/// The plain one: every tag has a TAT and the rule by which it is counted.
#[derive(Default)]
struct Plain(BTreeMap<u8, (usize, Tat)>);

impl Plain {
    fn read(&self, scales: &[Scale; 2], tag: u8, rule: usize, now: u64) -> Tat {
        let (counted, tat) = self.0.get(&tag).copied().unwrap_or((rule, 0));
        carry_over(&scales[counted], &scales[rule], tat, now)
    }
}

fn run(seed: u64, acts: &[Act]) {
    let table = empty(32);
    let scales = [per_second(10), Scale::new(&Rate::new(9, Duration::from_secs(2)), 7)];
    let rules = scales.each_ref().map(|scale| table.rule_index(1, scale).unwrap());
    let mut plain = Plain::default();
    let mut now = SECOND;
    let fingerprint = |tag: u8| Numbers(seed ^ u64::from(tag)).next();
    for act in acts {
        let (tag, rule) = match *act {
            Act::Wait(ns) => {
                now += ns;
                continue;
            }
            Act::Charge { tag, rule, .. }
            | Act::Refund { tag, rule, .. }
            | Act::Read { tag, rule } => (tag, usize::from(rule)),
            Act::Reset { tag } => (tag, 0),
        };
        let scale = &scales[rule];
        let key = Key { fingerprint: fingerprint(tag), rule: rules[rule] };
        // All that is past is the same: full.
        let full = |tat: Tat| tat.max(scale.ticks(now));
        let expected = plain.read(&scales, tag, rule, now);
        assert_eq!(full(table.read(key, scale, now)), full(expected), "{act:?}");
        let next = |tat| match *act {
            Act::Charge { units, .. } => scale.charge(tat, now, units),
            Act::Refund { units, .. } => scale.refund(tat, units),
            Act::Reset { .. } => 0,
            _ => tat,
        };
        let step = |tat| Step { tat: next(tat), hits: 0, answer: tat };
        let seen = table.update(key, scale, now, Some(now), step).unwrap();
        assert_eq!(full(seen), full(expected), "{act:?}");
        plain.0.insert(tag, (rule, next(expected)));
    }
    let full = |(rule, tat): &(usize, Tat)| scales[*rule].share_used(*tat, now) == 0;
    assert_eq!(table.live(now), plain.0.values().filter(|bucket| !full(bucket)).count());
    assert_eq!((table.evicted.get(), table.unreported.get()), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_table_with_room_is_a_map(
        seed in any::<u64>(),
        acts in prop::collection::vec(acts(), 1..if cfg!(miri) { 40 } else { 300 }),
    ) {
        run(seed, &acts);
    }
}
