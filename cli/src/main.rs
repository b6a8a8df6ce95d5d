//! The command `dthrottle`: looks after the named tables of a machine.
#![forbid(unsafe_code)]

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
}

fn main() -> ExitCode {
    let Command::Table(args) = Cli::parse().command;
    match table::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dthrottle: {error}");
            ExitCode::FAILURE
        }
    }
}
