//! Opening and closing a throttle, and what it counted.

use std::ffi::{CString, c_char};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use dthrottle_core::{Builder, Result};

use crate::config::Config;
use crate::ffi::{OutHandle, at};
use crate::records::Stats;

/// A throttle: holds every tag to the rules of its domains. Made by dthrottle_open() and its
/// sisters, released by dthrottle_close().
pub struct Throttle {
    pub(crate) core: dthrottle_core::Throttle,
    /// The texts, as C wants them.
    warnings: Vec<CString>,
    pub(crate) domains: Vec<CString>,
    /// Another one goes on with its table.
    is_replaced: AtomicBool,
}

/// Opens a throttle from a configuration in TOML.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_open(
    toml: *const c_char,
    toml_len: usize,
    out: *mut *mut Throttle,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let out = c.out_handle(out)?;
        let toml = c.text(toml, toml_len)?;
        give(out, dthrottle_core::Throttle::from_toml(toml))
    })
}

/// Opens a throttle from a configuration file in TOML.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_open_file(
    path: *const c_char,
    path_len: usize,
    out: *mut *mut Throttle,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let out = c.out_handle(out)?;
        let path = c.bytes(path.cast(), path_len)?;
        give(out, dthrottle_core::Throttle::from_file(as_path(path)?))
    })
}

/// Opens a throttle from a configuration made with dthrottle_config_new(). The configuration
/// stays the caller's, and can be used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_open_config(
    config: *const Config,
    out: *mut *mut Throttle,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let out = c.out_handle(out)?;
        let parts = c.handle(config)?.parts().clone();
        let builder = Builder::from(parts.core);
        let builder = match parts.clock {
            Some(clock) => builder.clock(clock),
            None => builder,
        };
        give(out, builder.build())
    })
}

/// Opens a throttle on the table of another one, with the rules of a configuration: no bucket is
/// lost. What the configuration says about the table and the clock is left out of account. In a
/// cluster the exchange starts anew. The old throttle and its domains go on with the old rules, and
/// are meant to be released: dthrottle_close() only does that with it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_reload(
    throttle: *const Throttle,
    config: *const Config,
    out: *mut *mut Throttle,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let out = c.out_handle(out)?;
        let core = c.handle(config)?.parts().core.clone();
        let old = c.handle(throttle)?;
        give(out, old.core.reload(core))?;
        // Relaxed: it is for whoever releases the handle, which is done with it.
        old.is_replaced.store(true, Ordering::Relaxed);
        Ok(())
    })
}

/// Closes a throttle and releases it; NULL is fine. Its domain handles remain, to be released
/// with dthrottle_domain_free(), and answer DTHROTTLE_ERR_CLOSED. Takes leave of its cluster in
/// this process, which may take 300 ms.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_close(throttle: *mut Throttle) {
    guard!(|c| {
        if let Some(throttle) = c.take_handle(throttle)?
            && !throttle.is_replaced.load(Ordering::Relaxed)
        {
            throttle.core.close();
        }
        Ok(())
    });
}

/// What the throttle counted so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_stats(throttle: *const Throttle, stats: *mut Stats) -> i32 {
    guard!(|c| {
        let out = c.out_struct(stats)?;
        out.fill(Stats::of(&c.handle(throttle)?.core.stats()));
        Ok(())
    })
}

/// What is not as it was asked for, by index from 0, such as a named table that is not shared
/// because there is no place for it; NULL if there is no more. Lives as long as the handle. The
/// throttle works all the same; nothing is printed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_warning(throttle: *const Throttle, index: i32) -> *const c_char {
    guard!(|c| {
        let warnings = &c.handle(throttle)?.warnings;
        Ok(at(warnings, index)?.as_ptr())
    })
}

fn give(out: OutHandle<'_, Throttle>, throttle: Result<dthrottle_core::Throttle>) -> Result<()> {
    let core = throttle?;
    let warnings = core.warnings().iter().map(|text| c_string(text)).collect();
    let domains = core.domains().iter().map(|domain| c_string(domain.name())).collect();
    out.set(Throttle { core, warnings, domains, is_replaced: AtomicBool::new(false) });
    Ok(())
}

/// A warning may quote a path of the user's, with whatever is in it.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// A path is any bytes where the system has it so.
#[cfg(unix)]
pub(crate) fn as_path(bytes: &[u8]) -> Result<&Path> {
    use std::os::unix::ffi::OsStrExt;

    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
pub(crate) fn as_path(bytes: &[u8]) -> Result<&Path> {
    let text = str::from_utf8(bytes).map_err(|_| crate::ffi::bad("a path is not UTF-8"))?;
    Ok(Path::new(text))
}
