//! As long as nothing is evicted, a table behaves like a map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Wait(u64),
    Charge { tag: u8, rule: bool, units: u64 },
    Refund { tag: u8, rule: bool, units: u64 },
    Reset { tag: u8 },
    Read { tag: u8, rule: bool },
}

fn operations() -> impl Strategy<Value = Operation> {
    let (tag, rule, units) = (0_u8..24, any::<bool>(), 0_u64..15);
    prop_oneof![
        (0..3 * SECOND).prop_map(Operation::Wait),
        (tag.clone(), rule, units.clone()).prop_map(|(tag, rule, units)| Operation::Charge {
            tag,
            rule,
            units
        }),
        (tag.clone(), rule, units).prop_map(|(tag, rule, units)| Operation::Refund {
            tag,
            rule,
            units
        }),
        tag.clone().prop_map(|tag| Operation::Reset { tag }),
        (tag, rule).prop_map(|(tag, rule)| Operation::Read { tag, rule }),
    ]
}

/// The reference: for every tag, its rule and its TAT in ticks of that rule.
#[derive(Default)]
struct Model(BTreeMap<u8, (usize, Tat)>);

impl Model {
    fn read(&self, scales: &[Scale; 2], tag: u8, rule: usize, now: u64) -> Tat {
        let (counted, tat) = self.0.get(&tag).copied().unwrap_or((rule, 0));
        carry_over(&scales[counted], &scales[rule], tat, now)
    }
}

fn run(seed: u64, operations: &[Operation]) {
    let table = empty(32);
    let scales = [per_second(10), Scale::new(&Rate::new(9, Duration::from_secs(2)), 7)];
    let rules = scales.each_ref().map(|scale| table.rule_index(1, scale).unwrap());
    let mut model = Model::default();
    let mut now = SECOND;
    let fingerprint = |tag: u8| Numbers(seed ^ u64::from(tag)).next();
    for operation in operations {
        let (tag, rule) = match *operation {
            Operation::Wait(ns) => {
                now += ns;
                continue;
            }
            Operation::Charge { tag, rule, .. }
            | Operation::Refund { tag, rule, .. }
            | Operation::Read { tag, rule } => (tag, usize::from(rule)),
            Operation::Reset { tag } => (tag, 0),
        };
        let scale = &scales[rule];
        let key = Key { fingerprint: fingerprint(tag), rule: rules[rule] };
        // All TATs in the past are equal, because the bucket is full.
        let full = |tat: Tat| tat.max(scale.ticks(now));
        let expected = model.read(&scales, tag, rule, now);
        assert_eq!(full(table.read(key, scale, now)), full(expected), "{operation:?}");
        let next = |tat| match *operation {
            Operation::Charge { units, .. } => scale.charge(tat, now, units),
            Operation::Refund { units, .. } => scale.refund(tat, units),
            Operation::Reset { .. } => 0,
            _ => tat,
        };
        let step = |tat| BucketUpdate { tat: next(tat), hits: 0, answer: tat };
        let seen = table.update(key, scale, now, Some(now), step).unwrap();
        assert_eq!(full(seen), full(expected), "{operation:?}");
        model.0.insert(tag, (rule, next(expected)));
    }
    let full = |(rule, tat): &(usize, Tat)| scales[*rule].share_used(*tat, now) == 0;
    assert_eq!(table.live(now), model.0.values().filter(|bucket| !full(bucket)).count());
    assert_eq!((table.evicted.get(), table.unreported.get()), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_table_with_free_slots_behaves_like_a_map(
        seed in any::<u64>(),
        operations in prop::collection::vec(operations(), 1..if cfg!(miri) { 40 } else { 300 }),
    ) {
        run(seed, &operations);
    }
}
