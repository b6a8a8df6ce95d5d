//! A client of dthrottled, for programs that ask a daemon instead of deciding by themselves.

use std::ffi::{c_char, c_void};
use std::sync::atomic::Ordering;
use std::time::Duration;

use dthrottle_core::{Decision, Result};

use crate::address::resolve;
use crate::connections::{DaemonConnections, Timeouts};
use crate::decision::CheckOptions;
use crate::ffi::{Caller, Flag, VersionedStruct, bad};
use crate::guard::catch_panic;
use crate::lines::{self, Answer};
use crate::records::ClientDecision;

/// A client: asks a dthrottled. Without an answer in time everything is allowed, and nobody is
/// asked for a while. Made by dthrottle_client_open(), released by dthrottle_client_close().
pub struct Client {
    connections: DaemonConnections,
    /// For what changes the state of the daemon.
    token: Option<String>,
}

/// How a client waits. Begin with DTHROTTLE_CLIENT_OPTIONS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClientOptions {
    /// sizeof(dthrottle_client_options_t).
    pub size: usize,
    /// How long a call may take; 50 ms.
    pub timeout_ns: u64,
    /// How long nobody is asked after a failure, twice as long after each further one; 100 ms.
    pub backoff_ns: u64,
    /// The longest such pause; 5 s.
    pub max_backoff_ns: u64,
    /// The daemon's token, which dthrottle_client_refund() and dthrottle_client_reset() need over
    /// TCP; NULL for none. dthrottle_client_open() copies it.
    pub token: *const c_char,
    /// Its length.
    pub token_len: usize,
}

/// What a client counted. Begin with DTHROTTLE_CLIENT_COUNTS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClientCounts {
    /// sizeof(dthrottle_client_counts_t).
    pub size: usize,
    /// Questions that the daemon answered.
    pub asked: u64,
    /// Questions that were allowed because nobody answered in time, or not asked during a pause.
    pub failed_open: u64,
    /// Connections that could not be made, or broke.
    pub failures: u64,
}

/// How many lines are sent before their answers are read.
const BATCH: usize = 256;

/// Makes a client of the daemon at address: the path of a Unix socket, which has a "/" in it, or
/// "host:port"; NULL is the daemon's default socket. A host's name is looked up here, once. options
/// NULL uses the defaults. Connects to nobody yet, so it does not matter whether the daemon runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_client_open(
    address: *const c_char,
    address_len: usize,
    options: *const ClientOptions,
    out: *mut *mut Client,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let out = c.out_handle(out)?;
        let address = c.name(address, address_len)?;
        let options = match options.is_null() {
            true => ClientOptions::DEFAULT,
            false => c.read(options)?,
        };
        let token =
            c.name(options.token, options.token_len)?.map(lines::check_token).transpose()?;
        let connections = DaemonConnections::new(resolve(address)?, options.to_timeouts()?);
        out.set(Client { connections, token });
        Ok(())
    })
}

/// Closes a client's connections and releases it; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_client_close(client: *mut Client) {
    guard!(|c| {
        c.take_handle(client)?;
        Ok(())
    });
}

/// Asks for one unit in the daemon's default domain, and takes it if it passes: 1 allowed, or
/// nobody answered; 0 refused; negative a status. So "if (dthrottle_client_allow(...))" goes on
/// also after an error. A tag cannot have a newline in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_client_allow(
    client: *const Client,
    tag: *const c_void,
    tag_len: usize,
) -> i32 {
    guard!(|c| {
        let client = c.handle(client)?;
        let mut allowed = [true];
        client.allow_many([c.bytes(tag, tag_len)?].into_iter(), &mut allowed)?;
        Ok(allowed[0])
    })
}

/// Asks for one unit for each of count tags in turn, in as few round trips as can be. allowed has
/// room for count answers. All tags are looked at before anything is asked; after an error, what is
/// not known is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_client_allow_many(
    client: *const Client,
    tags: *const *const c_void,
    tag_lens: *const usize,
    count: usize,
    allowed: *mut Flag,
) -> i32 {
    guard!(|c| {
        let allowed = c.out_flags(allowed, count)?;
        let tags = c.tags(tags, tag_lens, count)?;
        c.handle(client)?.allow_many(tags, allowed)
    })
}

/// Checks a tag with these options. domain NULL is the default domain, options NULL checks one unit.
/// Errors reported by the daemon, such as an unknown domain, are returned like local argument errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_client_check(
    client: *const Client,
    domain: *const c_char,
    domain_len: usize,
    tag: *const c_void,
    tag_len: usize,
    options: *const CheckOptions,
    decision: *mut ClientDecision,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| decide(c, options, decision, |options| {
        let domain = c.name(domain, domain_len)?;
        c.handle(client)?.decide("check", domain, options, c.bytes(tag, tag_len)?)
    }))
}

/// The answer that dthrottle_client_check() would get. Takes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_client_peek(
    client: *const Client,
    domain: *const c_char,
    domain_len: usize,
    tag: *const c_void,
    tag_len: usize,
    options: *const CheckOptions,
    decision: *mut ClientDecision,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| decide(c, options, decision, |options| {
        let domain = c.name(domain, domain_len)?;
        c.handle(client)?.decide("peek", domain, options, c.bytes(tag, tag_len)?)
    }))
}

/// Gives cost units back: 1 if the daemon heard of it, 0 if not. Needs the daemon's Unix socket, or
/// the token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_client_refund(
    client: *const Client,
    domain: *const c_char,
    domain_len: usize,
    tag: *const c_void,
    tag_len: usize,
    cost: u64,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let domain = c.name(domain, domain_len)?;
        c.handle(client)?.command(
            "refund",
            domain,
            Some(CheckOptions::cost(cost)),
            c.bytes(tag, tag_len)?,
        )
    })
}

/// Fills the tag's bucket of every rule: 1 if the daemon heard of it, 0 if not. Needs the daemon's
/// Unix socket, or the token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_client_reset(
    client: *const Client,
    domain: *const c_char,
    domain_len: usize,
    tag: *const c_void,
    tag_len: usize,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let domain = c.name(domain, domain_len)?;
        c.handle(client)?.command("reset", domain, None, c.bytes(tag, tag_len)?)
    })
}

/// What the client counted so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_client_counts(
    client: *const Client,
    counts: *mut ClientCounts,
) -> i32 {
    guard!(|c| {
        let out = c.out_struct(counts)?;
        let counted = &c.handle(client)?.connections.counts;
        out.fill(ClientCounts {
            size: ClientCounts::MIN_SIZE,
            asked: counted.asked.load(Ordering::Relaxed),
            failed_open: counted.failed_open.load(Ordering::Relaxed),
            failures: counted.failures.load(Ordering::Relaxed),
        });
        Ok(())
    })
}

impl Client {
    fn allow_many<'a>(
        &self,
        tags: impl Iterator<Item = &'a [u8]>,
        allowed: &mut [bool],
    ) -> Result<()> {
        let mut lines = Vec::new();
        let mut ends = Vec::with_capacity(allowed.len());
        for tag in tags {
            lines::write_line(tag, &mut lines)?;
            ends.push(lines.len());
        }
        let mut start = 0;
        for (ends, allowed) in ends.chunks(BATCH).zip(allowed.chunks_mut(BATCH)) {
            let end = ends.last().copied().unwrap_or(start);
            if let Some(answers) = self.connections.request(&lines[start..end], ends.len()) {
                let answers = answers.split(|byte| *byte == b'\n');
                allowed
                    .iter_mut()
                    .zip(answers)
                    .for_each(|(to, answer)| *to = lines::is_allowed(answer));
            }
            start = end;
        }
        Ok(())
    }

    /// Nothing if nobody answered.
    fn decide(
        &self,
        verb: &str,
        domain: Option<&str>,
        options: CheckOptions,
        tag: &[u8],
    ) -> Result<Option<Answer>> {
        let answer =
            self.connections.request(&lines::query(verb, domain, Some(options), None, tag)?, 1);
        self.read(answer.as_deref(), |answer| Some(lines::parse_decision(answer?)))
    }

    fn command(
        &self,
        verb: &str,
        domain: Option<&str>,
        options: Option<CheckOptions>,
        tag: &[u8],
    ) -> Result<bool> {
        let line = lines::query(verb, domain, options, self.token.as_deref(), tag)?;
        let answer = self.connections.request(&line, 1);
        self.read(answer.as_deref(), |answer| answer.is_some())
    }

    fn read<T>(&self, answer: Option<&[u8]>, read: impl FnOnce(Option<&str>) -> T) -> Result<T> {
        let Some(answer) = answer.and_then(|answer| answer.strip_suffix(b"\n")) else {
            return Ok(read(None));
        };
        Ok(read(lines::parse_answer(answer)?))
    }
}

/// Puts the answer to a question into `out`. Whatever goes wrong, even a panic: if there is room
/// for an answer, it is yes.
fn decide(
    c: &Caller,
    options: *const CheckOptions,
    out: *mut ClientDecision,
    question: impl FnOnce(CheckOptions) -> Result<Option<Answer>>,
) -> Result<()> {
    let out = c.out_struct(out)?;
    let mut cost = 1;
    let answer = catch_panic(|| {
        let options = match options.is_null() {
            true => CheckOptions::cost(1),
            false => c.read(options)?,
        };
        cost = options.cost;
        question(options)
    });
    out.fill(match &answer {
        Ok(Some((decision, rule))) => ClientDecision::of(decision, false, rule),
        Ok(None) => ClientDecision::of(&Decision::unlimited(cost), true, ""),
        Err(_) => ClientDecision::of(&Decision::unlimited(cost), false, ""),
    });
    answer.map(drop)
}

impl ClientOptions {
    const DEFAULT: ClientOptions = ClientOptions {
        size: size_of::<ClientOptions>(),
        timeout_ns: 50_000_000,
        backoff_ns: 100_000_000,
        max_backoff_ns: 5_000_000_000,
        token: std::ptr::null(),
        token_len: 0,
    };

    fn to_timeouts(self) -> Result<Timeouts> {
        if self.timeout_ns == 0 {
            return Err(bad("timeout_ns: 0; give a time above zero, such as 50000000 for 50 ms"));
        }
        if self.backoff_ns == 0 {
            return Err(bad("backoff_ns: 0; give a time above zero, such as 100000000 for 100 ms"));
        }
        if self.max_backoff_ns < self.backoff_ns {
            let (given, least) = (self.max_backoff_ns, self.backoff_ns);
            return Err(bad(&format!(
                "max_backoff_ns: {given}; give at least backoff_ns, {least}"
            )));
        }
        Ok(Timeouts {
            timeout: Duration::from_nanos(self.timeout_ns),
            backoff: Duration::from_nanos(self.backoff_ns),
            max_backoff: Duration::from_nanos(self.max_backoff_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_options_are_named() {
        let said = |change: fn(&mut ClientOptions)| {
            let mut options = ClientOptions::DEFAULT;
            change(&mut options);
            options.to_timeouts().map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(said(|_| {}), Ok(()));
        assert!(said(|options| options.timeout_ns = 0).unwrap_err().starts_with("timeout_ns: "));
        assert!(said(|options| options.backoff_ns = 0).unwrap_err().starts_with("backoff_ns: "));
        let error = said(|options| options.max_backoff_ns = 99_999_999).unwrap_err();
        assert_eq!(error, "max_backoff_ns: 99999999; give at least backoff_ns, 100000000");
    }
}
