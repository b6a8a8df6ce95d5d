//! A client of dthrottled, for programs that send checks to a daemon.

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

/// A client of dthrottled. If the daemon does not answer in time, checks are allowed, and the
/// client sends no request for a while. Made by dthrottle_client_open(), released by
/// dthrottle_client_close().
pub struct Client {
    connections: DaemonConnections,
    /// For commands that change the state of the daemon.
    token: Option<String>,
}

/// Options of a client. Begin with DTHROTTLE_CLIENT_OPTIONS_INIT, which sets the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClientOptions {
    /// sizeof(dthrottle_client_options_t).
    pub size: usize,
    /// The longest time of a call. Default: 50 ms.
    pub timeout_ns: u64,
    /// How long the client sends no request after a failure. Doubles with each further failure.
    /// Default: 100 ms.
    pub backoff_ns: u64,
    /// The longest time without requests. Default: 5 s.
    pub max_backoff_ns: u64,
    /// The token of the daemon, or NULL. dthrottle_client_refund() and dthrottle_client_reset()
    /// need it over TCP. dthrottle_client_open() copies it.
    pub token: *const c_char,
    /// Its length.
    pub token_len: usize,
}

/// Counts of a client. Begin with DTHROTTLE_CLIENT_COUNTS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClientCounts {
    /// sizeof(dthrottle_client_counts_t).
    pub size: usize,
    /// Requests that the daemon answered.
    pub answered: u64,
    /// Requests that the daemon did not answer in time, or that were not sent during a pause after a
    /// failure. Checks among them are allowed.
    pub failed_open: u64,
    /// Connections that could not be opened, or failed.
    pub failures: u64,
}

/// The maximum number of lines that are sent before their answers are read.
const BATCH: usize = 256;

/// Makes a client of the daemon at address: the path of a Unix socket, which contains a "/", or
/// "host:port". NULL is the default socket of the daemon. A host name is looked up once, in this
/// call. If options is NULL, the defaults are used. The client connects when it sends the first
/// request, so the daemon need not run yet.
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

/// Closes the connections of a client and releases it. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_client_close(client: *mut Client) {
    guard!(|c| {
        c.take_handle(client)?;
        Ok(())
    });
}

/// Checks one unit in the default domain of the daemon. Returns 1 if it is allowed or the daemon
/// does not answer, 0 if it is refused, and a negative status after an error. So "if
/// (dthrottle_client_allow(...))" is also true after an error. A tag must not contain a newline.
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

/// Checks one unit for each of count tags, in as few round trips as possible. Writes count results
/// to allowed. If a tag is invalid, nothing is sent. After an error, tags without a result are
/// allowed.
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

/// Checks a tag. If domain is NULL, in the default domain; if options is NULL, for one unit. Errors
/// that the daemon reports, such as an unknown domain, are returned like errors of arguments.
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

/// Like dthrottle_client_check(), but takes no units.
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

/// Gives cost units back to every rule. Returns 1 if the daemon did it, and 0 if it did not answer.
/// Needs the Unix socket of the daemon, or the token.
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

/// Fills the bucket of the tag in every rule. Returns 1 if the daemon did it, and 0 if it did not
/// answer. Needs the Unix socket of the daemon, or the token.
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

/// Returns the counts of a client.
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
            answered: counted.answered.load(Ordering::Relaxed),
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

    /// Sends a check or peek. Returns `None` if the daemon does not answer.
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

/// Runs a check and writes its decision to `out`. If the check fails or panics, the decision is
/// allowed.
fn decide(
    c: &Caller,
    options: *const CheckOptions,
    out: *mut ClientDecision,
    check: impl FnOnce(CheckOptions) -> Result<Option<Answer>>,
) -> Result<()> {
    let out = c.out_struct(out)?;
    let mut cost = 1;
    let answer = catch_panic(|| {
        let options = match options.is_null() {
            true => CheckOptions::cost(1),
            false => c.read(options)?,
        };
        cost = options.cost;
        check(options)
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
            return Err(bad("`timeout_ns` must be above 0, such as 50000000 for 50 ms, got 0"));
        }
        if self.backoff_ns == 0 {
            return Err(bad("`backoff_ns` must be above 0, such as 100000000 for 100 ms, got 0"));
        }
        if self.max_backoff_ns < self.backoff_ns {
            let (given, least) = (self.max_backoff_ns, self.backoff_ns);
            return Err(bad(&format!(
                "`max_backoff_ns` must be at least backoff_ns, {least}, got {given}"
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
    fn an_invalid_time_is_an_error_that_names_the_option() {
        let result_of = |change: fn(&mut ClientOptions)| {
            let mut options = ClientOptions::DEFAULT;
            change(&mut options);
            options.to_timeouts().map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(result_of(|_| {}), Ok(()));
        assert!(
            result_of(|options| options.timeout_ns = 0).unwrap_err().starts_with("`timeout_ns` ")
        );
        assert!(
            result_of(|options| options.backoff_ns = 0).unwrap_err().starts_with("`backoff_ns` ")
        );
        let error = result_of(|options| options.max_backoff_ns = 99_999_999).unwrap_err();
        assert_eq!(error, "`max_backoff_ns` must be at least backoff_ns, 100000000, got 99999999");
    }
}
