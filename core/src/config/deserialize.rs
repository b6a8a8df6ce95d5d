//! Reads configurations from any format that serde supports, as a part of an application's own
//! settings. The readers of TOML and objects read them too, so errors are the same, but have no
//! line.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

#[cfg(feature = "busy")]
use super::BusyConfig;
use super::{Config, ConfigNode, Entry, Names, Value};

/// Keys are in snake case, as in TOML. An error names the field within the configuration.
impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Config, D::Error> {
        let root = ConfigNode::deserialize(deserializer)?;
        Config::from_value(&root, Names::Snake).map_err(D::Error::custom)
    }
}

#[cfg(feature = "busy")]
/// Keys are in snake case, as in TOML. An error names the field within the settings.
impl<'de> Deserialize<'de> for BusyConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BusyConfig, D::Error> {
        let root = ConfigNode::deserialize(deserializer)?;
        BusyConfig::from_value(&root, Names::Snake).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ConfigNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ConfigNode, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(ConfigNode::from)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a dthrottle configuration")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    // No key takes a whole number that f64 cannot represent exactly.
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.into()))
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Value, E> {
        Ok(Value::Other("bytes".into()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Other("null".into()))
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Other("null".into()))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, node)) = map.next_entry()? {
            entries.push(Entry { key, line: None, node });
        }
        Ok(Value::Table(entries))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::{BusyConfig, Config};

    /// An application's settings, which contain a configuration.
    #[derive(Debug, Deserialize)]
    struct Settings {
        name: String,
        limits: Config,
    }

    #[test]
    fn config_deserializes_as_a_field_of_application_settings() {
        let limits = json!({
            "rate": "100/s",
            "domains": { "login": { "rate": 5, "burst": 7, "charge_refused": true } },
            "cluster": { "name": "c", "peers": ["127.0.0.1:7"] },
        });
        let settings: Settings =
            serde_json::from_value(json!({ "name": "shop", "limits": limits })).unwrap();
        let text = "rate = '100/s'\n[domains.login]\nrate = 5\nburst = 7\ncharge_refused = true\n\
                    [cluster]\nname = 'c'\npeers = ['127.0.0.1:7']";
        assert_eq!(settings.limits, Config::from_toml(text).unwrap());
        assert_eq!(settings.name, "shop");
    }

    #[test]
    fn deserializing_a_wrong_value_reports_the_same_error_as_toml() {
        let error = |limits: serde_json::Value| {
            let settings = json!({ "name": "shop", "limits": limits });
            serde_json::from_value::<Settings>(settings).unwrap_err().to_string()
        };
        let (typo, expected) =
            (json!({ "rate": 5, "brust": 5 }), "`brust` is an unknown key; did you mean");
        assert!(error(typo.clone()).starts_with(expected), "{}", error(typo));
        let nested = json!({ "rules": [{ "rate": "5 apples" }] });
        assert!(error(nested.clone()).starts_with("`rules[0].rate` must be "), "{}", error(nested));
        let null = json!({ "rate": null });
        assert!(error(null.clone()).starts_with("`rate` must be "), "{}", error(null));
        let busy = serde_json::from_str::<BusyConfig>(r#"{ "flor": 2 }"#).unwrap_err().to_string();
        assert!(busy.starts_with("`flor` is an unknown key; did you mean `floor`?"), "{busy}");
    }
}
