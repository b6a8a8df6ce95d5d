use dthrottle::busy::{Live, Mode, Recover};
use crate::world::*;

#[test]
fn sweep() {
    let report = |name: &str, mode: Option<Mode>| {
        let mut line = format!("{name:<34}");
        let mut worst = (1.0_f64, 0.0_f64, 0.0_f64);
        for server in [Server::Even, Server::Seconds] {
            for (clients, demand, capacity) in [(4, 1000.0, 400.0), (2, 300.0, 60.0), (8, 1000.0, 200.0), (1, 200.0, 100.0), (16, 2000.0, 1500.0), (6, 120.0, 40.0)] {
                for seed in 1..4 {
                    let world = World { server, clients, demand, capacity: vec![(0.0, capacity), (25.0, demand * 2.0)], seed, seconds: 50, ..World::new(mode) };
                    let t = world.run();
                    let (good, busy) = over(&t[..25]);
                    let back = (25..50).find(|i| t[*i].good as f64 >= 0.9 * demand).map_or(99.0, |i| i as f64 - 25.0);
                    worst = (worst.0.min(good / capacity), worst.1.max(busy), worst.2.max(back));
                    if seed == 1 { line += &format!(" {:.2}/{:.3}/{back}", good / capacity, busy); }
                }
            }
        }
        // outage
        let world = World { capacity: vec![(0.0, 2000.0), (10.0, 0.0), (20.0, 2000.0)], ..World::new(mode) };
        let t = world.run();
        let back = (20..40).find(|i| t[*i].good as f64 >= 900.0).map_or(99, |i| i - 20);
        println!("{line}\n   worst {worst:.3?} outage back {back} busy {:.3}", over(&t).1);
    };
    report("none", None);
    report("document", Some(Mode::Document(Recover::Rate(3.0))));
    report("document 200", Some(Mode::Document(Recover::Value(200.0))));
    for near in [0.8, 0.9, 0.95] { for step in [0.01, 0.02, 0.04] { for patience in [3.0, 5.0, 6.0] { for growth in [2.0, 3.0] {
        let live = Live { near, step, patience, growth, ..Live::default() };
        report(&format!("near {near} step {step} patience {patience} growth {growth}"), Some(Mode::Live(live)));
    }}}}
}
