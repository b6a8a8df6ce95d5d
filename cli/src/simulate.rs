//! `dthrottle simulate`: computes limits for a pattern of traffic, second by second.

mod busy;
mod plot;

use std::error::Error;

use clap::Subcommand;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand)]
enum Subject {
    /// Simulate "Throttling on Busy Responses" (docs/busy.md).
    Busy(busy::Args),
}

pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let Subject::Busy(args) = &args.subject;
    busy::run(args)
}
