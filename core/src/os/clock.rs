//! The system's clock. It is monotonic, and counts suspended time where the system supports that.

/// Nanoseconds since the machine started.
#[inline]
pub(crate) fn now_ns() -> u64 {
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    return super::tsc::now_ns(precise_ns);
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
    precise_ns()
}

/// Milliseconds since 1970. This clock may be set at any time.
pub(crate) fn unix_ms() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};

    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Nanoseconds since the machine started, read from the system.
#[cfg(all(feature = "shared", unix))]
fn precise_ns() -> u64 {
    use rustix::time::{ClockId, clock_gettime};

    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: ClockId = ClockId::Monotonic;

    let time = clock_gettime(CLOCK);
    // Neither part is negative, because the clock starts at zero.
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// Nanoseconds since the first call, plus two days, because a table's time begins before its first
/// check.
#[cfg(not(all(feature = "shared", unix)))]
fn precise_ns() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;

    const BEFORE_NS: u64 = 2 * 86_400 * 1_000_000_000;
    static START: OnceLock<Instant> = OnceLock::new();
    let passed = START.get_or_init(Instant::now).elapsed().as_nanos();
    BEFORE_NS + u64::try_from(passed).unwrap_or(u64::MAX / 2)
}
