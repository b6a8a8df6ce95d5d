//! Opens and closes throttles, and returns their statistics.

use std::ffi::{CString, c_char};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use dthrottle_core::{Builder, Result};

use crate::config::Config;
use crate::ffi::{OutHandle, at};
use crate::records::Stats;

/// A throttle: limits every tag by the rules of its domains. Made by dthrottle_open(),
/// dthrottle_open_file(), dthrottle_open_config() or dthrottle_reload(), released by
/// dthrottle_close().
pub struct Throttle {
    pub(crate) core: dthrottle_core::Throttle,
    /// Warnings and names as C strings.
    warnings: Vec<CString>,
    pub(crate) domains: Vec<CString>,
    /// Whether `dthrottle_reload` made another throttle on its table.
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
        open(out, dthrottle_core::Throttle::from_toml(toml))
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
        open(out, dthrottle_core::Throttle::from_file(as_path(path)?))
    })
}

/// Opens a throttle from a configuration made with dthrottle_config_new(). The caller keeps the
/// configuration, and may use it again.
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
        open(out, builder.build())
    })
}

/// Opens a throttle on the table of another throttle, with the rules of a configuration. No bucket
/// is lost. The table and the clock of the configuration are ignored. In a cluster the exchange
/// starts again. The old throttle and its domains keep the old rules, and should be released;
/// dthrottle_close() on the old handle now only frees it.
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
        open(out, old.core.reload(core))?;
        // Relaxed: it is read when the handle is released, and no other thread may use it then.
        old.is_replaced.store(true, Ordering::Relaxed);
        Ok(())
    })
}

/// Closes a throttle and releases it. NULL is allowed. Its domain handles remain valid until
/// dthrottle_domain_free(); calls with them return DTHROTTLE_ERR_CLOSED. In a cluster, this process
/// leaves it, which may take 300 ms.
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

/// Returns the statistics of a throttle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_stats(throttle: *const Throttle, stats: *mut Stats) -> i32 {
    guard!(|c| {
        let out = c.out_struct(stats)?;
        out.fill(Stats::of(&c.handle(throttle)?.core.stats()));
        Ok(())
    })
}

/// Returns a warning of the throttle by its index from 0, or NULL after the last one. A warning
/// says that something differs from the configuration, for example that a named table is not
/// shared. The throttle works anyway. The string is valid until the handle is released. Nothing is
/// printed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_warning(throttle: *const Throttle, index: i32) -> *const c_char {
    guard!(|c| {
        let warnings = &c.handle(throttle)?.warnings;
        Ok(at(warnings, index)?.as_ptr())
    })
}

fn open(out: OutHandle<'_, Throttle>, throttle: Result<dthrottle_core::Throttle>) -> Result<()> {
    let core = throttle?;
    let warnings = core.warnings().iter().map(|text| c_string(text)).collect();
    let domains = core.domains().iter().map(|domain| c_string(domain.name())).collect();
    out.set(Throttle { core, warnings, domains, is_replaced: AtomicBool::new(false) });
    Ok(())
}

/// Makes a C string. Replaces NUL, which a path in a warning may contain.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Returns a path. On Unix it may contain any bytes.
#[cfg(unix)]
pub(crate) fn as_path(bytes: &[u8]) -> Result<&Path> {
    use std::os::unix::ffi::OsStrExt;

    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
pub(crate) fn as_path(bytes: &[u8]) -> Result<&Path> {
    let text = str::from_utf8(bytes)
        .map_err(|_| crate::ffi::bad("a path must be UTF-8 on this system"))?;
    Ok(Path::new(text))
}
