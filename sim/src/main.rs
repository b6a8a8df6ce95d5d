//! The command: `dthrottle-sim one SEED` and `dthrottle-sim soak N`.
use dthrottle_sim::judge::judge;
use dthrottle_sim::random::scenario;
use dthrottle_sim::soak::soak;
use dthrottle_sim::world::run;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args.get(i).and_then(|n| n.parse::<u64>().ok()).unwrap_or(1);
    match args.first().map(String::as_str) {
        Some("one") => {
            let scenario = scenario(number(1));
            println!("{scenario:#?}");
            let start = std::time::Instant::now();
            let outcome = run(&scenario);
            println!(
                "{:?} slowest {} {:?} {:?}",
                start.elapsed(),
                outcome.slowest / 1000000,
                outcome.counts,
                outcome.conforming
            );
            for (kind, meter) in outcome
                .tags
                .iter()
                .filter(|(k, _)| !matches!(k, dthrottle_sim::scenario::Kind::Zipf { .. }))
            {
                println!(
                    "{kind:?} {:?} excess {:.1} of {:.1} error {:.4} worst {:.2} dry {} fair {:.3}",
                    meter.totals(),
                    meter.excess(),
                    dthrottle_sim::bound::excess(&scenario, &outcome, meter),
                    meter.rate_error(),
                    meter.worst_second(),
                    meter.dry_spell(),
                    meter.fairness()
                );
            }
            for (at, node, event) in &outcome.events {
                println!("{:10.6} {node} {event}", *at as f64 / 1e9);
            }
            for view in &outcome.views {
                println!("{view:?}");
            }
            for breach in judge(&scenario, &outcome) {
                println!("{breach}");
            }
        }
        Some("try") => {
            for scenario in dthrottle_sim::table::scenarios() {
                if args.get(1).is_some_and(|n| !scenario.name.contains(n))
                    || args.get(2).is_some_and(|n| *n != scenario.nodes.to_string())
                {
                    continue;
                }
                let start = std::time::Instant::now();
                let outcome = run(&scenario);
                let (_, meter) = &outcome.tags[0];
                println!(
                    "{} {} {:?} slowest {} {:?} {:?} {:?} excess {:.1} of {:.1} error {:.4} worst {:.2} dry {} fair {:.3}",
                    scenario.name,
                    scenario.nodes,
                    start.elapsed(),
                    outcome.slowest / 1000000,
                    outcome.counts,
                    outcome.conforming,
                    meter.totals(),
                    meter.excess(),
                    dthrottle_sim::bound::excess(&scenario, &outcome, meter),
                    meter.rate_error(),
                    meter.worst_second(),
                    meter.dry_spell() / 1000000,
                    meter.fairness()
                );
                for breach in judge(&scenario, &outcome) {
                    println!("   {breach}");
                }
            }
        }
        Some("soak") => {
            let from = number(2) - 1;
            let start = std::time::Instant::now();
            for failure in soak(from..from + number(1), |_| {}) {
                println!("{failure}");
            }
            println!("{:?}", start.elapsed());
        }
        _ => {}
    }
}
