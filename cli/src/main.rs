//! The command `dthrottle`: looks after the named tables of a machine, asks a daemon, and simulates.
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

/// Hold every client to a rate, over many processes and hosts.
#[derive(Parser)]
#[command(name = "dthrottle", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Ask a daemon about a tag, and take what passes. Fails with 1 when it is refused.
    Check(check::Args),
    /// Ask a daemon about a tag, and take nothing. Fails with 1 when it would be refused.
    Peek(check::Args),
    /// Fill the buckets of a tag.
    Reset(check::ResetArgs),
    /// Show what a daemon counted.
    Stats(inspect::Args),
    /// Show the cluster as a daemon sees it.
    Peers(inspect::Args),
    /// Show the most refused tags and the busiest buckets, live.
    Top(inspect::TopArgs),
    /// Ask a daemon as fast as it answers, and say how fast that was.
    Bench(bench::Args),
    /// List, remove or resize the named tables of this machine.
    Table(table::Args),
    /// Show what an arithmetic makes of a pattern of traffic.
    Simulate(simulate::Args),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // A refusal is 1 where there can be one, and then no error is.
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
