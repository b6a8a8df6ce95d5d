//! The questions of the demonstration, asked in Rust. The other languages are in `demo/`.

use std::time::Duration;

use dthrottle::{ManualClock, Rule, Throttle};

fn main() -> Result<(), dthrottle::Error> {
    let clock = ManualClock::new();
    let rule = Rule::parse("5/s").burst(8);
    let throttle = Throttle::builder().rule(rule).clock(clock.clone()).build()?;
    let mut answers = String::new();
    for _second in 0..3 {
        for _ in 0..10 {
            answers.push(if throttle.allow("alice")? { '+' } else { '-' });
        }
        answers.push(' ');
        clock.advance(Duration::from_secs(1));
    }
    println!("{answers}{:?}", throttle.check("alice")?.remaining);
    Ok(())
}
