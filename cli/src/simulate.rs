//! `dthrottle simulate`: what an arithmetic makes of a pattern of traffic, second by second.

mod busy;
mod plot;

use std::error::Error;

use clap::Subcommand;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Throttling on busy answers, by the arithmetic of the document: docs/busy.md.
    Busy(busy::Args),
}

pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let What::Busy(args) = &args.what;
    busy::run(args)
}
