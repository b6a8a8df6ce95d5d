//! Command-line flags: the configuration file, or settings instead of a file.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use dthrottle::{Config, Rule};
use tracing::level_filters::LevelFilter;

use crate::config::{ListenAddress, Settings, parse_address, read_file};

/// Answers whether a client's request should be served: the daemon of dthrottle.
#[derive(Parser)]
#[command(name = "dthrottled", version)]
pub(crate) struct Flags {
    /// The configuration file (TOML), for throttle and daemon.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Check the configuration, print what is wrong, and exit.
    #[arg(long)]
    pub(crate) check: bool,
    /// The rate of the only rule, such as "100/s". Not together with --config.
    #[arg(long, conflicts_with = "config")]
    rate: Option<String>,
    /// The burst of that rule: a number, or a duration such as "10s".
    #[arg(long, requires = "rate")]
    burst: Option<String>,
    /// The name of the table [default: dthrottled].
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    table: Option<String>,
    /// Answer lines here: a path or an address with a port. May be repeated.
    #[arg(long, value_name = "SOCKET", value_parser = ListenAddress::parse)]
    listen: Vec<ListenAddress>,
    /// Answer HTTP here: an address with a port, or "off".
    #[arg(long, value_name = "ADDRESS", value_parser = or_off)]
    http: Option<Address>,
    /// Answer RESP here: an address with a port, or "off".
    #[arg(long, value_name = "ADDRESS", value_parser = or_off)]
    resp: Option<Address>,
    /// Accept accounting of Smockron's gatekeepers here; control is on the next port.
    #[arg(long, value_name = "ADDRESS", value_parser = or_off)]
    smockron: Option<Address>,
    /// The level of the log: off, error, warn, info, debug or trace.
    #[arg(long, default_value = "info")]
    pub(crate) log_level: LevelFilter,
    /// The format of the log, which goes to standard error.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// An address, or `None` for "off".
#[derive(Clone, Copy)]
struct Address(Option<SocketAddr>);

fn or_off(text: &str) -> Result<Address, String> {
    match text {
        "off" => Ok(Address(None)),
        _ => parse_address(text).map(|address| Address(Some(address))),
    }
}

impl Flags {
    /// Reads and checks the whole configuration.
    pub(crate) fn read(&self) -> Result<(Config, Settings), String> {
        let named = |error: dthrottle::Error| match &self.config {
            Some(path) => format!("{}: {error}", path.display()),
            None => error.to_string(),
        };
        let text = match &self.config {
            Some(path) => read_file(path).map_err(named)?,
            None => String::new(),
        };
        let (mut config, mut settings) = Settings::from_toml(&text).map_err(named)?;
        if let Some(rate) = &self.rate {
            let rule = Rule::parse(rate);
            let rule = match &self.burst {
                Some(burst) => rule.parse_burst(burst),
                None => rule,
            };
            config.add_rule(Config::DEFAULT, rule);
        }
        if let Some(name) = &self.table {
            config.set_table(dthrottle::TableConfig::named(name));
        }
        if !self.listen.is_empty() {
            settings.listen.clone_from(&self.listen);
        }
        if let Some(Address(http)) = self.http {
            settings.http = http;
        }
        if let Some(Address(resp)) = self.resp {
            settings.resp = resp;
        }
        if let Some(Address(smockron)) = self.smockron {
            settings.smockron = smockron;
        }
        settings.check().map_err(|error| error.to_string())?;
        settings.allow_no_rules(&mut config);
        config.validate().map_err(named)?;
        Ok((config, settings))
    }
}
