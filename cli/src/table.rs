//! `dthrottle table`: list, remove and resize named tables.

use std::io::{self, Write};

use clap::Subcommand;
use dthrottle::tables::{self, TableInfo};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    /// The tables of this group, by name or number, instead of this user's.
    #[arg(long, global = true)]
    group: Option<String>,
    /// The directory to look in, instead of this user's default directories.
    #[arg(long, global = true)]
    dir: Option<String>,
}

#[derive(Subcommand)]
enum Action {
    /// Show all tables: name, size, buckets in use, file.
    List,
    /// Remove a table. Processes that have it open keep it until they end.
    Remove {
        /// The table's name.
        name: String,
    },
    /// Give a table another size and keep its buckets. Restart its processes afterwards: those
    /// that have it open keep the old one until they end.
    Resize {
        /// The table's name.
        name: String,
        /// A number of tags, or bytes such as "64 MB".
        size: String,
    },
}

pub(crate) fn run(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let (group, dir) = (args.group.as_deref(), args.dir.as_deref());
    match &args.action {
        Action::List => show(&tables::list(group, dir)?)?,
        Action::Remove { name } => tables::remove(name, group, dir)?,
        Action::Resize { name, size } => match tables::resize(name, size, group, dir)? {
            0 => {}
            buckets => eprintln!("dthrottle: {buckets} buckets did not fit and are forgotten"),
        },
    }
    Ok(())
}

fn show(tables: &[TableInfo]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{:<24} {:>12} {:>12} {:>14}  FILE", "NAME", "TAGS", "BUCKETS", "BYTES")?;
    for table in tables {
        let TableInfo { name, path, bytes, tags, buckets, fault, .. } = table;
        let path = path.display();
        writeln!(out, "{name:<24} {tags:>12} {buckets:>12} {bytes:>14}  {path}")?;
        if let Some(fault) = fault {
            writeln!(out, "  {fault}")?;
        }
    }
    Ok(())
}
