//! dthrottled: makes decisions for programs that cannot link the library. `docs/daemon.md`
//! describes it.
#![forbid(unsafe_code)]

mod config;
mod connection;
mod daemon;
mod decisions;
mod descriptors;
mod first_line;
mod flags;
mod histogram;
mod history;
mod http;
mod limit;
mod line;
mod listen;
mod notify;
mod process;
mod query;
mod refused;
mod report;
mod resp;
mod scan_cache;
mod serve;
#[cfg(feature = "smockron")]
mod smockron;
#[cfg(not(feature = "smockron"))]
#[path = "no_smockron.rs"]
mod smockron;
mod socket_file;
mod state;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use dthrottle::Throttle;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinHandle, LocalSet};
use tracing::{info, warn};

use daemon::Daemon;
use descriptors::Limits;
use flags::{Flags, LogFormat};
use listen::Listeners;
use serve::Workers;

type Failure = Box<dyn Error>;

/// The time in seconds after which a refusal counts half in the list of most refused tags.
const REFUSED_HALF_LIFE: u64 = 30;
/// How long the shutdown waits for a reload.
const RELOAD_LIMIT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let flags = Flags::parse();
    match start(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dthrottled: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(flags: &Flags) -> Result<(), Failure> {
    let (config, settings) = flags.read()?;
    if flags.check {
        println!("dthrottled: the configuration is valid");
        return Ok(());
    }
    let log =
        tracing_subscriber::fmt().with_max_level(flags.log_level).with_writer(std::io::stderr);
    match flags.log_format {
        LogFormat::Text => log.with_ansi(false).init(),
        LogFormat::Json => log.json().init(),
    }
    let limits = Limits::of_process(&settings)?;
    let table = config.table_name().map_or("private".to_string(), |name| format!("{name:?}"));
    let throttle = dthrottle::Builder::from(config).build()?;
    for warning in throttle.warnings() {
        warn!("{warning}");
    }
    if daemon::has_no_rules(&throttle) {
        warn!("no domain has a rule, so every check is allowed");
    }
    let listeners = Listeners::open(&settings)?;
    throttle.start()?;
    for address in listeners.reachable_without_token() {
        warn!(
            "every client that can reach {address} can charge any tag; restrict access to your own hosts"
        );
    }
    let ready = ready_line(&listeners, &throttle, &table);
    let daemon = Arc::new(Daemon::new(settings, limits, flags.config.clone(), throttle)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = LocalSet::new().block_on(&runtime, run(&daemon, listeners, &ready));
    // Does not wait for a reload that is still reading its file.
    runtime.shutdown_background();
    daemon.close();
    ended
}

/// The log line that lists listeners, table, rules and cluster.
fn ready_line(listeners: &Listeners, throttle: &Throttle, table: &str) -> String {
    let domains = throttle.domains();
    let rules: usize = domains.iter().map(|domain| domain.rules().len()).sum();
    let described = listeners.describe();
    let or_none = |address: Option<String>| address.unwrap_or("none".into());
    format!(
        "dthrottled {} is ready: lines on {}; http on {}; resp on {}; smockron on {}; table {table}; \
         {rules} rules in {} domains; cluster {}",
        env!("CARGO_PKG_VERSION"),
        described.lines.join(" and "),
        or_none(described.http),
        or_none(described.resp),
        or_none(described.smockron),
        domains.len(),
        if throttle.cluster_stats().is_some() { "joined" } else { "none" },
    )
}

/// Serves connections until SIGTERM or SIGINT.
async fn run(daemon: &Arc<Daemon>, listeners: Listeners, ready: &str) -> Result<(), Failure> {
    // Before the daemon reports that it is ready, because signals may arrive from then on.
    let mut hangup = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (end, ending) = watch::channel(false);
    let workers = std::rc::Rc::new(Workers::start(daemon, &ending)?);
    let mut accepting = tokio::task::JoinSet::new();
    for listener in listeners.unix {
        let (workers, listener) = (workers.clone(), UnixListener::from_std(listener)?);
        accepting.spawn_local(async move { workers.accept_unix(listener).await });
    }
    for listener in listeners.tcp {
        let (workers, listener) = (workers.clone(), TcpListener::from_std(listener)?);
        accepting.spawn_local(async move { workers.accept_tcp(listener).await });
    }
    if let Some(listener) = listeners.resp {
        let (workers, listener) = (workers.clone(), TcpListener::from_std(listener)?);
        accepting.spawn_local(async move { workers.accept_resp(listener).await });
    }
    if let Some(listener) = listeners.http {
        let (daemon, listener) = (Arc::clone(daemon), TcpListener::from_std(listener)?);
        accepting.spawn_local(async move { http::serve(listener, daemon).await });
    }
    if let Some((accounting, control)) = listeners.smockron {
        let (accounting, control) =
            (TcpListener::from_std(accounting)?, TcpListener::from_std(control)?);
        let daemon = Arc::clone(daemon);
        accepting.spawn_local(async move { smockron::serve(accounting, control, daemon).await });
    }
    let ticking = Arc::clone(daemon);
    accepting.spawn_local(async move { tick(&ticking).await });
    info!("{ready}");
    notify::ready();
    let mut reload: Option<JoinHandle<()>> = None;
    loop {
        tokio::select! {
            // One reload at a time. A signal during a reload starts another one afterwards.
            _ = hangup.recv(), if reload.is_none() => {
                notify::reloading();
                let daemon = Arc::clone(daemon);
                // Reading the file and leaving the cluster may take long.
                reload = Some(tokio::task::spawn_blocking(move || daemon.reload()));
            }
            () = finished(&mut reload) => {
                reload = None;
                notify::ready();
            }
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    notify::stopping();
    info!("shutting down: accepting no new connections, sending the last answers");
    // Removes the socket files first, so that another daemon can start while this one sends its
    // last answers.
    drop(listeners.files);
    accepting.shutdown().await;
    let _ = end.send(true);
    let workers = std::rc::Rc::into_inner(workers).ok_or("a listener did not end")?;
    workers.join();
    if reload.is_some() {
        // A reload that joins a cluster finishes soon. One that reads from a pipe may never finish.
        let _ = tokio::time::timeout(RELOAD_LIMIT, finished(&mut reload)).await;
    }
    Ok(())
}

/// Waits for the end of a reload. Waits for ever if there is none.
async fn finished(reload: &mut Option<JoinHandle<()>>) {
    match reload {
        Some(task) => drop(task.await),
        None => std::future::pending().await,
    }
}

/// The work that is done once a second.
async fn tick(daemon: &Daemon) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    for count in 1_u64.. {
        second.tick().await;
        let (allowed, refused) = daemon.decisions();
        daemon.state.with_history(|history| history.record(allowed, refused));
        if count.is_multiple_of(REFUSED_HALF_LIFE) {
            daemon.state.refused.age();
        }
    }
}
