//! The time between two looks at the system's clock, by the processor's counter: half the price.
//!
//! A thread keeps an anchor: a moment by both clocks, and how fast the counter runs. For a
//! millisecond after it the counter says how much time has passed; then the system is asked again.
//! So no error lives longer than a millisecond, whatever becomes of the counter in a suspend or a
//! migration, and all processes agree to within a fraction of a microsecond.
#![allow(unsafe_code, reason = "one of the homes of unsafe code; see ARCHITECTURE.md")]

use std::arch::x86_64::_rdtsc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::local::{Anchor, LOCAL};

/// Counts between two anchors: about a millisecond.
const SPAN: u64 = 1 << 21;
/// A span longer than this, about a second, says little about the counter's speed.
const LONG_SPAN: u64 = 1 << 31;
/// A system call that took longer than so many counts was interrupted.
const INTERRUPTED: u64 = 1 << 11;
/// Bits behind the point in `Anchor::speed`.
const FRACTION: u32 = 32;

/// Nanoseconds by the clock that `precise` reads.
#[inline]
pub(super) fn now_ns(precise: fn() -> u64) -> u64 {
    let anchor = LOCAL.with(|local| local.anchor.get());
    let passed = count().wrapping_sub(anchor.count);
    if passed < SPAN && anchor.speed != 0 {
        return anchor.ns + ((passed * anchor.speed) >> FRACTION);
    }
    measure(precise)
}

/// Asks the system, and drops the anchor here.
#[cold]
fn measure(precise: fn() -> u64) -> u64 {
    let last = LOCAL.with(|local| local.anchor.get());
    let before = count();
    let ns = precise();
    let count = count();
    let passed = count.wrapping_sub(last.count);
    if count.wrapping_sub(before) > INTERRUPTED || !is_steady() {
        return ns;
    }
    let known = last.ns != 0 && ns > last.ns;
    let speed = match passed {
        // Too soon to measure.
        0..SPAN if known => return ns,
        SPAN..LONG_SPAN if known && ns - last.ns < 1 << FRACTION => {
            let speed = ((ns - last.ns) << FRACTION) / passed;
            // A counter that has stopped or jumped is measured again before it is believed.
            if last.speed == 0 || speed.abs_diff(last.speed) < last.speed / 64 { speed } else { 0 }
        }
        // As it was, if it was known; the next span will tell.
        _ => last.speed,
    };
    LOCAL.with(|local| local.anchor.set(Anchor { count, ns, speed }));
    ns
}

/// Whether the system itself trusts the counter for its clock.
fn is_steady() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    /// 0: not asked yet, 1: no, 2: yes.
    static ANSWER: AtomicU8 = AtomicU8::new(0);
    // Relaxed: whoever does not see the answer asks again.
    match ANSWER.load(Ordering::Relaxed) {
        0 => {
            let steady = std::fs::read_to_string(SOURCE).is_ok_and(|name| name.trim() == "tsc");
            ANSWER.store(1 + u8::from(steady), Ordering::Relaxed);
            steady
        }
        answer => answer == 2,
    }
}

#[inline]
fn count() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; Linux lets everyone use it unless a
    // process forbids it to itself.
    unsafe { _rdtsc() }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::os::clock::now_ns;

    /// The same moment by both clocks.
    fn moment() -> (Instant, u64) {
        let mut tries = (0..1_000_000).map(|_| {
            let (zero, start) = (Instant::now(), now_ns());
            (zero.elapsed() < Duration::from_micros(5)).then_some((zero, start))
        });
        tries.find_map(|moment| moment).expect("a look that is not interrupted")
    }

    /// Both clocks are read side by side for a while; a look that was interrupted proves nothing.
    #[test]
    fn the_counter_keeps_to_the_clock() {
        let (zero, start) = moment();
        let mut checked = 0;
        let mut last = start;
        while checked <= 1000 || zero.elapsed() < Duration::from_millis(50) {
            assert!(zero.elapsed() < Duration::from_secs(60), "only {checked} looks");
            let before = zero.elapsed().as_nanos() as u64;
            let now = now_ns();
            let after = zero.elapsed().as_nanos() as u64;
            if after - before < 1_000 {
                let passed = now - start;
                assert!(passed + 20_000 > before && passed < after + 20_000, "{passed} {before}");
                assert!(now + 2_000 > last, "back by {} ns", last - now);
                checked += 1;
            }
            last = now;
        }
    }
}
