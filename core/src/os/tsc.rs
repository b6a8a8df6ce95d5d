//! A clock that reads the processor's counter between two readings of the system's clock, which
//! takes half the time.
//!
//! Each thread keeps an anchor: the time and the counter at one moment, and the speed of the
//! counter. For a millisecond after the anchor, the time is computed from the counter. Then the
//! system's clock is read again. So an error lasts at most a millisecond, whatever a suspend or a
//! migration does to the counter, and the clocks of all processes agree to within a fraction of a
//! microsecond.
#![allow(unsafe_code, reason = "unsafe code is allowed here; see ARCHITECTURE.md")]

use std::arch::x86_64::_rdtsc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::local::{Anchor, LOCAL};

/// Counts between two anchors: about a millisecond.
const SPAN: u64 = 1 << 21;
/// A span longer than this, about a second, is not used to measure the counter's speed.
const LONG_SPAN: u64 = 1 << 31;
/// A system call that took more counts than this was interrupted.
const INTERRUPTED: u64 = 1 << 11;
/// Fractional bits of `Anchor::speed`.
const FRACTION: u32 = 32;

/// Nanoseconds on the clock that `precise` reads.
#[inline]
pub(super) fn now_ns(precise: fn() -> u64) -> u64 {
    let anchor = LOCAL.with(|local| local.anchor.get());
    let passed = count().wrapping_sub(anchor.count);
    if passed < SPAN && anchor.speed != 0 {
        return anchor.ns + ((passed * anchor.speed) >> FRACTION);
    }
    measure(precise)
}

/// Reads the system's clock and sets a new anchor.
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
        // Too soon to measure the speed.
        0..SPAN if known => return ns,
        SPAN..LONG_SPAN if known && ns - last.ns < 1 << FRACTION => {
            let speed = ((ns - last.ns) << FRACTION) / passed;
            // A counter that has stopped or jumped is measured again before it is used.
            if last.speed == 0 || speed.abs_diff(last.speed) < last.speed / 64 { speed } else { 0 }
        }
        // The old speed, if it was known. The next span measures it again.
        _ => last.speed,
    };
    LOCAL.with(|local| local.anchor.set(Anchor { count, ns, speed }));
    ns
}

/// Returns true if the kernel uses the counter for its own clock.
fn is_steady() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    /// 0: unknown, 1: no, 2: yes.
    static ANSWER: AtomicU8 = AtomicU8::new(0);
    // Relaxed: a thread that does not see the answer reads the file again.
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
    // SAFETY: every x86-64 processor has the instruction, and Linux allows it unless a process
    // forbids it for itself.
    unsafe { _rdtsc() }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::os::clock::now_ns;

    /// The same moment on both clocks.
    fn moment() -> (Instant, u64) {
        let mut tries = (0..1_000_000).map(|_| {
            let (zero, start) = (Instant::now(), now_ns());
            (zero.elapsed() < Duration::from_micros(5)).then_some((zero, start))
        });
        tries.find_map(|moment| moment).expect("one of a million readings is not interrupted")
    }

    /// Reads both clocks alternately for a while. Interrupted readings prove nothing and are
    /// skipped.
    #[test]
    fn the_counter_agrees_with_the_system_clock() {
        let (zero, start) = moment();
        let mut checked = 0;
        let mut last = start;
        while checked <= 1000 || zero.elapsed() < Duration::from_millis(50) {
            assert!(zero.elapsed() < Duration::from_secs(60), "only {checked} readings in 60 s");
            let before = zero.elapsed().as_nanos() as u64;
            let now = now_ns();
            let after = zero.elapsed().as_nanos() as u64;
            if after - before < 1_000 {
                let passed = now - start;
                assert!(passed + 20_000 > before && passed < after + 20_000, "{passed} {before}");
                assert!(now + 2_000 > last, "the clock went back by {} ns", last - now);
                checked += 1;
            }
            last = now;
        }
    }
}
