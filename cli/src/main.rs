//! The command `dthrottle`: manages the named tables of a machine, queries a daemon, and simulates
//! busy responses.
#![forbid(unsafe_code)]

mod bench;
mod check;
mod daemon;
mod inspect;
mod output;
mod simulate;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Limit the rate of every client, over many processes and hosts.
#[derive(Parser)]
#[command(name = "dthrottle", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check a tag and take its units. Exits with 1 if the daemon refuses.
    Check(check::Args),
    /// Check a tag without taking units. Exits with 1 if the daemon would refuse.
    Peek(check::Args),
    /// Fill the buckets of a tag.
    Reset(check::ResetArgs),
    /// Show the counts of a daemon.
    Stats(inspect::Args),
    /// Show the cluster of a daemon.
    Peers(inspect::Args),
    /// Show the most refused tags and the busiest buckets, live.
    Top(inspect::TopArgs),
    /// Measure how fast a daemon answers.
    Bench(bench::Args),
    /// List, remove or resize the named tables of this machine.
    Table(table::Args),
    /// Simulate how a limit follows busy responses.
    Simulate(simulate::Args),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // Commands that can be refused use 1 for a refusal, so their errors are 2.
    let failure = if matches!(command, Command::Table(_) | Command::Simulate(_)) { 1 } else { 2 };
    let done = match &command {
        Command::Check(args) => check::run("check", args),
        Command::Peek(args) => check::run("peek", args),
        Command::Reset(args) => check::reset(args),
        Command::Stats(args) => inspect::stats(args),
        Command::Peers(args) => inspect::peers(args),
        Command::Top(args) => inspect::top(args),
        Command::Bench(args) => bench::run(args),
        Command::Table(args) => table::run(args).map(|()| ExitCode::SUCCESS),
        Command::Simulate(args) => simulate::run(args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("dthrottle: {error}");
        ExitCode::from(failure)
    })
}
