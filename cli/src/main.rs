//! The command `dthrottle`: looks after the named tables of a machine, and simulates.
#![forbid(unsafe_code)]

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
    /// List, remove or resize the named tables of this machine.
    Table(table::Args),
    /// Show what an arithmetic makes of a pattern of traffic.
    Simulate(simulate::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Table(args) => table::run(&args),
        Command::Simulate(args) => simulate::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dthrottle: {error}");
            ExitCode::FAILURE
        }
    }
}
