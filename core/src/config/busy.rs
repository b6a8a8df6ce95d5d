//! The configuration of a busy throttle: how its limits fall and recover, and where it stores the
//! limits of services.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::cluster::ClusterConfig;
use super::reader::{ConfigTable, Names, Reader};
use super::table::TableConfig;
use super::value::{ConfigNode, Entry, Value};
use crate::busy::{Live, Recover};
use crate::convert::shown;
use crate::error::{Error, Result};
use crate::limit::rate::{parse_duration, quoted};
use crate::records::keys;

const LIVE_KEYS: [&str; 5] = ["cut", "near", "step", "patience", "growth"];
const DOCUMENT_KEYS: [&str; 2] = ["recover_rate", "recover_value"];

/// The default floor of mode `live`, in requests per second.
const LIVE_FLOOR: f64 = 1.0;
/// The default floor of mode `document`, low enough to reproduce the tables of the specification
/// exactly.
const DOCUMENT_FLOOR: f64 = 0.0001;
/// The default of `max_pause`.
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// How limits fall and recover.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// A busy response halves the limit, at most once per second. The limit recovers quickly to
    /// near the last good rate, and from there in small steps.
    Live(Live),
    /// The formulas of the specification for clients of busy services, see docs/busy.md.
    Document(Recover),
}

/// The settings of a [`BusyThrottle`](crate::BusyThrottle). docs/busy.md describes them.
///
/// ```
/// use dthrottle::BusyConfig;
///
/// let config = BusyConfig::new().floor(10.0);
/// # let _ = config;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BusyConfig {
    pub(crate) mode: Mode,
    pub(crate) floor: Option<f64>,
    pub(crate) max_pause: Duration,
    /// `None` uses memory that is shared with forked children only.
    pub(crate) table: Option<TableConfig>,
    /// `None` does not share busy responses with other nodes. Another process that uses the table
    /// may still share them.
    pub(crate) cluster: Option<ClusterConfig>,
}

impl Default for BusyConfig {
    fn default() -> BusyConfig {
        let mode = Mode::Live(Live::default());
        BusyConfig { mode, floor: None, max_pause: MAX_PAUSE, table: None, cluster: None }
    }
}

impl BusyConfig {
    /// Returns the default settings: mode `live` with a floor of one request per second.
    pub fn new() -> BusyConfig {
        BusyConfig::default()
    }

    /// Sets how limits fall and recover.
    #[must_use]
    pub fn mode(self, mode: Mode) -> BusyConfig {
        BusyConfig { mode, ..self }
    }

    /// Sets the lowest limit of a service, in requests per second.
    #[must_use]
    pub fn floor(self, floor: f64) -> BusyConfig {
        BusyConfig { floor: Some(floor), ..self }
    }

    /// Sets the longest pause that a service can request with `Retry-After`.
    #[must_use]
    pub fn max_pause(self, max_pause: Duration) -> BusyConfig {
        BusyConfig { max_pause, ..self }
    }

    /// Sets the table that stores the limits. All processes that use a named table share them.
    #[must_use]
    pub fn table(self, table: TableConfig) -> BusyConfig {
        BusyConfig { table: Some(table), ..self }
    }

    /// Sets the cluster. A busy response to one node then slows every node.
    #[must_use]
    pub fn cluster(self, cluster: ClusterConfig) -> BusyConfig {
        BusyConfig { cluster: Some(cluster), ..self }
    }

    /// Reads the settings from a tree of values.
    ///
    /// # Errors
    ///
    /// If a key is unknown or a value is wrong. The error names the field.
    pub fn from_value(root: &ConfigNode, names: Names) -> Result<BusyConfig> {
        let mut reader = Reader { names, lines: Vec::new() };
        let table = reader.table(root, "", &[keys::BUSY_NAMES])?;
        let config = reader.busy(&table)?;
        config.check_as(names).map_err(|error| {
            let line = error.field().and_then(|field| reader.line_of(field));
            error.at_line(line)
        })?;
        Ok(config)
    }

    pub(crate) fn min_limit(&self) -> f64 {
        self.floor.unwrap_or(match self.mode {
            Mode::Live(_) => LIVE_FLOOR,
            Mode::Document(_) => DOCUMENT_FLOOR,
        })
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.check_as(Names::Snake)
    }

    fn check_as(&self, names: Names) -> Result<()> {
        let check = |key: &str, number: f64, range: RangeInclusive<f64>| {
            if range.contains(&number) {
                return Ok(());
            }
            let (from, to) = (shown(*range.start()), shown(*range.end()));
            let message = format!("must be a number from {from} to {to}, got {}", shown(number));
            Err(Error::config(names.spell(key), message))
        };
        check("floor", self.min_limit(), 1e-4..=1e6)?;
        match self.mode {
            Mode::Live(Live { cut, near, step, patience, growth }) => {
                check("cut", cut, 0.1..=0.95)?;
                check("near", near, 0.1..=1.0)?;
                check("step", step, 0.0..=1.0)?;
                check("patience", patience, 0.0..=3600.0)?;
                check("growth", growth, 1.1..=100.0)?;
            }
            Mode::Document(Recover::Rate(rate)) => check("recover_rate", rate, 0.1..=100.0)?,
            Mode::Document(Recover::Value(value)) => check("recover_value", value, 0.1..=1e6)?,
        }
        self.table.as_ref().map_or(Ok(()), |table| table.check(names))?;
        self.cluster.as_ref().map_or(Ok(()), |cluster| cluster.check(names))
    }
}

impl Reader {
    fn busy(&mut self, table: &ConfigTable<'_>) -> Result<BusyConfig> {
        let mut config = BusyConfig::default();
        let mode = match table.get("mode") {
            Some(entry) => self.text(entry, "")?,
            None if table.first(&DOCUMENT_KEYS).is_some() => "document",
            None => "live",
        };
        let other_mode_keys = match mode {
            "live" => DOCUMENT_KEYS.as_slice(),
            "document" => LIVE_KEYS.as_slice(),
            other => {
                let message = format!(r#"must be "live" or "document", got {}"#, quoted(other));
                return Err(Error::config("mode", message));
            }
        };
        if let Some(misplaced) = table.first(other_mode_keys) {
            let message = format!("has no effect in mode {mode:?}; remove it");
            return Err(Error::config(misplaced.key.as_str(), message));
        }
        let number = |key: &str, default: f64| match table.get(key) {
            Some(entry) => self.number(entry),
            None => Ok(default),
        };
        config.mode = match mode {
            "live" => {
                let default = Live::default();
                Mode::Live(Live {
                    cut: number("cut", default.cut)?,
                    near: number("near", default.near)?,
                    step: number("step", default.step)?,
                    patience: match table.get("patience") {
                        Some(entry) => self.time(entry)?.as_secs_f64(),
                        None => default.patience,
                    },
                    growth: number("growth", default.growth)?,
                })
            }
            _ => Mode::Document(match (table.get("recover_rate"), table.get("recover_value")) {
                (Some(_), Some(value)) => {
                    let rate = self.names.spell("recover_rate");
                    let message = format!("must not be given together with `{rate}`; remove one");
                    return Err(Error::config(value.key.as_str(), message));
                }
                (None, Some(value)) => Recover::Value(self.number(value)?),
                _ => Recover::Rate(number("recover_rate", 3.0)?),
            }),
        };
        if let Some(entry) = table.get("floor") {
            config.floor = Some(self.number(entry)?);
        }
        if let Some(entry) = table.get("max_pause") {
            config.max_pause = self.time(entry)?;
        }
        if let Some(entry) = table.get("table") {
            config.table = Some(self.table_config(entry)?);
        }
        if let Some(entry) = table.get("cluster") {
            config.cluster = Some(self.cluster(entry)?);
        }
        Ok(config)
    }

    fn number(&self, entry: &Entry) -> Result<f64> {
        match entry.node.value {
            Value::Number(number) => Ok(number),
            _ => Err(self.wrong(entry, "", "a number")),
        }
    }

    fn time(&self, entry: &Entry) -> Result<Duration> {
        let expected = r#"a duration such as "10s""#;
        let Value::Text(text) = &entry.node.value else {
            return Err(self.wrong(entry, "", expected));
        };
        parse_duration(text).map_err(|reason| {
            let message = format!("must be {expected}, got {}: {reason}", quoted(text));
            Error::config(entry.key.as_str(), message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(entries: &[(&str, Value)]) -> Result<BusyConfig> {
        let entries = entries.iter().map(|(key, value)| Entry::new(*key, value.clone()));
        let root = ConfigNode::from(Value::Table(entries.collect()));
        BusyConfig::from_value(&root, Names::Camel)
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn missing_options_use_their_defaults() {
        assert_eq!(read(&[]), Ok(BusyConfig::new()));
        let document = read(&[("recoverValue", Value::Number(200.0))]).unwrap();
        assert_eq!(document.mode, Mode::Document(Recover::Value(200.0)));
        let document = read(&[("mode", text("document"))]).unwrap();
        assert_eq!(document.mode, Mode::Document(Recover::Rate(3.0)));
        let live = read(&[("patience", text("1500ms")), ("maxPause", text("1m"))]).unwrap();
        assert_eq!(live.mode, Mode::Live(Live { patience: 1.5, ..Live::default() }));
        assert_eq!(live.max_pause, Duration::from_secs(60));
        let named = read(&[("table", text("calls"))]).unwrap();
        assert_eq!(named.table, Some(TableConfig::named("calls")));
    }

    #[test]
    fn an_error_names_the_option_the_value_and_what_is_valid() {
        let number = Value::Number;
        let errors: [(&[(&str, Value)], &str); 10] = [
            (&[("mode", text("dead"))], r#"`mode` must be "live" or "document", got "dead""#),
            (&[("florr", number(1.0))], "`florr` is an unknown key; did you mean `floor`?"),
            (&[("floor", number(0.0))], "`floor` must be a number from 0.0001 to 1000000, got 0"),
            (
                &[("floor", number(f64::NAN))],
                "`floor` must be a number from 0.0001 to 1000000, got NaN",
            ),
            (&[("cut", text("half"))], r#"`cut` must be a number, got "half""#),
            (&[("growth", number(1.0))], "`growth` must be a number from 1.1 to 100, got 1"),
            (
                &[("growth", number(2.0)), ("recoverRate", number(3.0)), ("mode", text("live"))],
                "`recoverRate` has no effect in mode \"live\"; remove it",
            ),
            (
                &[("recoverRate", number(3.0)), ("recoverValue", number(3.0))],
                "`recoverValue` must not be given together with `recoverRate`; remove one",
            ),
            (
                &[("recoverRate", number(-3.0))],
                "`recoverRate` must be a number from 0.1 to 100, got -3",
            ),
            (&[("maxPause", number(3.0))], r#"`maxPause` must be a duration such as "10s", got 3"#),
        ];
        for (entries, message) in errors {
            assert_eq!(read(entries).unwrap_err().to_string(), message);
        }
    }
}
