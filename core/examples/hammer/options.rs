//! Options of a task, such as `name=web`. Some may be repeated.

use std::error::Error;
use std::time::Duration;

use dthrottle::{Builder, Rate, Rule, TableConfig, Throttle};

/// A period in which no unit returns while a test runs.
pub(crate) const HARDLY_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

pub(crate) struct Options(Vec<(String, String)>);

impl Options {
    pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Options, Box<dyn Error>> {
        let pairs = words.map(|word| match word.split_once('=') {
            Some((key, value)) => Ok((key.to_string(), value.to_string())),
            None => Err(format!("an option must be KEY=VALUE, got {word:?}").into()),
        });
        pairs.collect::<Result<_, _>>().map(Options)
    }

    pub(crate) fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }

    pub(crate) fn number(&self, key: &str) -> Result<u64, Box<dyn Error>> {
        let text = self.get(key).ok_or_else(|| format!("the option `{key}` is missing"))?;
        text.parse().map_err(|_| format!("`{key}` must be a number, got {text}").into())
    }

    /// The table that the options describe.
    pub(crate) fn table(&self) -> Result<TableConfig, Box<dyn Error>> {
        let mut table = match self.get("name") {
            Some(name) => TableConfig::named(name),
            None if self.get("private").is_some() => TableConfig::private(),
            None => TableConfig::anonymous(),
        };
        if let Some(dir) = self.get("dir") {
            table = table.dir(dir);
        }
        if let Some(group) = self.get("group") {
            table = table.group(group);
        }
        if self.get("tags").is_some() {
            table = table.tags(self.number("tags")?);
        }
        Ok(table)
    }

    /// A throttle on that table, with one rule for each `burst`.
    pub(crate) fn builder(&self) -> Result<Builder, Box<dyn Error>> {
        let mut builder = Throttle::builder().rule(Rule::unlimited()).table(self.table()?);
        for burst in self.all("burst") {
            let rule = slow(burst.parse()?);
            builder = builder.rule(match self.get("rule") {
                Some(name) => rule.name(name),
                None => rule,
            });
        }
        Ok(builder)
    }
}

/// A rule whose units do not return while a test runs.
pub(crate) fn slow(burst: u64) -> Rule {
    Rule::new(Rate::new(1, HARDLY_EVER)).burst(burst).name(format!("of-{burst}"))
}
