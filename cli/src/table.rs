//! `dthrottle table`: list, remove and resize named tables.

use std::fmt::Write;

use clap::Subcommand;
use dthrottle::tables::{self, TableInfo};
use serde_json::{Value, json};

use crate::output::print;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    /// Use the tables of this group (name or number) instead of this user's.
    #[arg(long, global = true)]
    group: Option<String>,
    /// Use the tables in this directory instead of this user's default directories.
    #[arg(long, global = true)]
    dir: Option<String>,
}

#[derive(Subcommand)]
enum Action {
    /// List all tables with their size, buckets in use and file.
    List {
        /// Print JSON: an array with an object for each table.
        #[arg(long)]
        json: bool,
    },
    /// Remove a table. Processes that have opened it keep it until they end.
    Remove {
        /// The table's name.
        name: String,
    },
    /// Change the size of a table and keep its buckets. Restart its processes afterwards: until
    /// then they keep using the old table.
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
        Action::List { json } => {
            let tables = tables::list(group, dir)?;
            print(&if *json { as_json(&tables) } else { as_text(&tables) })?;
        }
        Action::Remove { name } => tables::remove(name, group, dir)?,
        Action::Resize { name, size } => match tables::resize(name, size, group, dir)? {
            0 => {}
            buckets => eprintln!("dthrottle: {buckets} buckets did not fit and were dropped"),
        },
    }
    Ok(())
}

fn as_text(tables: &[TableInfo]) -> String {
    let mut out =
        format!("{:<24} {:>12} {:>12} {:>14}  FILE\n", "NAME", "TAGS", "BUCKETS", "BYTES");
    for table in tables {
        let TableInfo { name, path, bytes, tags, buckets, fault, .. } = table;
        let path = path.display();
        // Writing to memory cannot fail.
        let _ = writeln!(out, "{name:<24} {tags:>12} {buckets:>12} {bytes:>14}  {path}");
        if let Some(fault) = fault {
            let _ = writeln!(out, "  {fault}");
        }
    }
    out
}

fn as_json(tables: &[TableInfo]) -> String {
    let table = |table: &TableInfo| {
        let TableInfo { name, path, bytes, tags, buckets, cluster, fault, .. } = table;
        json!({
            "name": name, "path": path.to_string_lossy(), "bytes": bytes, "tags": tags,
            "buckets": buckets, "cluster": cluster, "fault": fault,
        })
    };
    format!("{}\n", tables.iter().map(table).collect::<Value>())
}
