//! A cluster from settings such as `peer=10.0.0.1`, as the directives of web servers give them.

use crate::config::Config;
use crate::config::reader::{Names, Reader};
use crate::config::value::{ConfigNode, Entry, Value};
use crate::error::{Error, Result};
use crate::limit::rate::quoted;
use crate::records::keys::{self, KeyKind};

const PATH: &str = "cluster";
/// Is read as the key `secret` with a table that names a file.
const SECRET_FILE: &str = "secret_file";

impl Config {
    /// Sets the cluster from settings written as `key=value`. A key that takes a list may be
    /// repeated, and is written in the singular: `peer`, `packet_key`. `secret_file` is the path
    /// of the file that contains the secret. A flag is `on` or `off`.
    ///
    /// # Errors
    ///
    /// A setting without `=`, an unknown key, a value of the wrong kind, or a configuration that
    /// has a cluster already. The values are checked when a throttle is built.
    pub fn set_cluster_settings<'a>(
        &mut self,
        settings: impl IntoIterator<Item = &'a str>,
    ) -> Result<()> {
        if self.cluster.is_some() {
            return Err(Error::config(PATH, "is given twice; remove one"));
        }
        let mut entries = Vec::new();
        for setting in settings {
            add(&mut entries, setting)?;
        }
        let entry = Entry::new(PATH, Value::Table(entries));
        let cluster = Reader { names: Names::Snake, lines: Vec::new() }.cluster(&entry)?;
        self.set_cluster(cluster);
        Ok(())
    }
}

/// Adds one setting to the entries of the table.
fn add(entries: &mut Vec<Entry>, setting: &str) -> Result<()> {
    let Some((name, text)) = setting.split_once('=') else {
        // Quotes the first word only: the rest may be a secret.
        let word = setting.split(|c: char| !c.is_ascii_lowercase() && c != '_').next();
        let word = quoted(word.unwrap_or_default());
        let message = format!("must be key=value, such as name=web, got {word} without =");
        return Err(Error::config(PATH, message));
    };
    if name == SECRET_FILE {
        let file = Entry::new("file", Value::Text(text.into()));
        entries.push(Entry::new("secret", Value::Table(vec![file])));
        return Ok(());
    }
    let known = keys::CLUSTER.iter().find(|key| match key.kind {
        KeyKind::Texts => key.name.strip_suffix('s') == Some(name),
        _ => key.name == name,
    });
    if keys::CLUSTER.iter().any(|key| key.name == name && key.kind == KeyKind::Texts) {
        let one = name.trim_end_matches('s');
        let message = format!("is written as {one}=, once for each of the {name}");
        return Err(Error::config(format!("{PATH}.{name}"), message));
    }
    // The reader reports an unknown key, with the one that was probably meant.
    let key = known.map_or(name, |key| key.name);
    let value = match (known.map(|key| key.kind), text.to_ascii_lowercase().as_str()) {
        (Some(KeyKind::Bool), "on") => Value::Bool(true),
        (Some(KeyKind::Bool), "off") => Value::Bool(false),
        (Some(KeyKind::Bool), _) => {
            let message = format!("must be on or off, got {}", quoted(text));
            return Err(Error::config(format!("{PATH}.{key}"), message));
        }
        (Some(KeyKind::Whole | KeyKind::Size), _) => {
            text.parse().map_or(Value::Text(text.into()), Value::Number)
        }
        (Some(KeyKind::Texts), _) => {
            let item = ConfigNode::from(Value::Text(text.into()));
            if let Some(Value::List(items)) =
                entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node.value)
            {
                items.push(item);
                return Ok(());
            }
            Value::List(vec![item])
        }
        _ => Value::Text(text.into()),
    };
    entries.push(Entry::new(key, value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ClusterConfig;

    fn read(settings: &[&str]) -> Result<ClusterConfig> {
        let mut config = Config::default();
        config.set_cluster_settings(settings.iter().copied())?;
        Ok(config.cluster.unwrap())
    }

    #[test]
    fn settings_read_like_the_same_keys_in_toml() {
        let secret = "name=web secret_file=/etc/secret packet_key=0123456789abcdef period=50ms";
        for (settings, toml) in [
            (
                "peer=10.0.0.1 without_secret=off peer=10.0.0.2:7000",
                "without_secret = false\npeers = ['10.0.0.1', '10.0.0.2:7000']\n",
            ),
            (
                "multicast=239.1.2.3:7000 multicast_ttl=3",
                "multicast = '239.1.2.3:7000'\nmulticast_ttl = 3\n",
            ),
        ] {
            let settings: Vec<&str> = secret.split(' ').chain(settings.split(' ')).collect();
            let toml = format!(
                "[cluster]\nname = 'web'\nsecret = {{ file = '/etc/secret' }}\n\
                 packet_keys = ['0123456789abcdef']\nperiod = '50ms'\n{toml}"
            );
            let config = Config::from_toml(&toml).unwrap();
            assert_eq!(read(&settings).unwrap(), config.cluster.unwrap());
        }
    }

    #[test]
    fn errors_name_the_setting_and_the_fix() {
        let message = |settings: &[&str]| read(settings).unwrap_err().to_string();
        assert_eq!(
            message(&["name"]),
            "`cluster` must be key=value, such as name=web, got \"name\" without ="
        );
        assert_eq!(
            message(&["name=a", "pacing=x"]),
            "`cluster.pacing` must be on or off, got \"x\""
        );
        assert_eq!(message(&["name=a", "name=b"]), "`cluster.name` is given twice; remove one");
        assert_eq!(
            message(&["name=a", "liste=x"]),
            "`cluster.liste` is an unknown key; did you mean `listen`?"
        );
        assert_eq!(
            message(&["packet_key:0123456789abcdef"]),
            "`cluster` must be key=value, such as name=web, got \"packet_key\" without ="
        );
        assert_eq!(
            message(&["name=a", "peers=10.0.0.1"]),
            "`cluster.peers` is written as peer=, once for each of the peers"
        );
        assert!(read(&["name=a", "pacing=On", "retention_bytes=1000000"]).is_ok());
        assert!(message(&["name=a", "multicast_ttl=x"]).starts_with("`cluster.multicast_ttl` "));
    }

    #[test]
    fn a_second_cluster_is_an_error() {
        let mut config = Config::default();
        config.set_cluster_settings(["name=a"]).unwrap();
        let error = config.set_cluster_settings(["name=b"]).unwrap_err();
        assert_eq!(error.to_string(), "`cluster` is given twice; remove one");
    }
}
