//! Reads a cluster configuration from a tree. Errors never quote secrets.

use std::time::Duration;

use super::check::MAX_PEERS;
use super::{ClusterConfig, Reports};
use crate::config::read::{is_number, number_as_text};
use crate::config::reader::{ConfigTable, Keys, Reader, join};
use crate::config::table::Size;
use crate::config::value::{Entry, Value};
use crate::error::{Error, Result};
use crate::limit::rate::{parse_duration, quoted};
use crate::records::keys;

const PATH: &str = "cluster";
const SECRET_TABLE_KEYS: Keys = &[&["file"]];

impl Reader {
    pub(in crate::config) fn cluster(&mut self, entry: &Entry) -> Result<ClusterConfig> {
        self.lines.push((PATH.into(), entry.line));
        let table = self.table(&entry.node, PATH, &[keys::CLUSTER_NAMES])?;
        for (_, entry) in &table.0 {
            self.lines.push((join(PATH, &entry.key), entry.node.line.or(entry.line)));
        }
        let Some(name) = table.get("name") else {
            let message = "is missing; add the name that all nodes of the cluster share";
            return Err(Error::config(join(PATH, "name"), message).at_line(entry.line));
        };
        let cluster = ClusterConfig::new(self.text(name, PATH)?);
        let cluster = self.read_secrets(cluster, &table)?;
        let cluster = self.read_addresses(cluster, &table)?;
        self.read_timing(cluster, &table)
    }

    fn read_secrets(
        &mut self,
        mut cluster: ClusterConfig,
        table: &ConfigTable<'_>,
    ) -> Result<ClusterConfig> {
        if let Some(entry) = table.get("secret") {
            cluster = match &entry.node.value {
                Value::Text(secret) => cluster.secret(secret),
                Value::Table(_) => {
                    let path = join(PATH, "secret");
                    let table = self.table(&entry.node, &path, SECRET_TABLE_KEYS)?;
                    let Some(file) = table.get("file") else {
                        let message = r#"must have the path of the file, as in { file = "path" }"#;
                        return Err(Error::config(path, message).at_line(entry.line));
                    };
                    cluster.secret_file(self.text(file, &path)?)
                }
                _ => {
                    let message = r#"must be text of at least 16 bytes, or { file = "path" }"#;
                    return Err(self.fault(entry, message));
                }
            };
        }
        if let Some(entry) = table.get("packet_keys") {
            let message = "must be a list of texts of at least 16 bytes each";
            let Value::List(nodes) = &entry.node.value else {
                return Err(self.fault(entry, message));
            };
            let mut keys = Vec::new();
            for (i, node) in nodes.iter().enumerate() {
                let path = format!("{}[{i}]", join(PATH, &entry.key));
                let Value::Text(key) = &node.value else {
                    let message = "must be text of at least 16 bytes";
                    return Err(Error::config(path, message).at_line(node.line));
                };
                self.lines.push((path, node.line));
                keys.push(key);
            }
            cluster = cluster.packet_keys(keys);
        }
        if let Some(entry) = table.get("without_secret") {
            cluster = cluster.without_secret(self.bool(entry, PATH)?);
        }
        Ok(cluster)
    }

    fn read_addresses(
        &mut self,
        mut cluster: ClusterConfig,
        table: &ConfigTable<'_>,
    ) -> Result<ClusterConfig> {
        if let Some(entry) = table.get("listen") {
            cluster = cluster.listen(self.text(entry, PATH)?);
        }
        if let Some(entry) = table.get("advertise") {
            cluster = cluster.advertise(self.text(entry, PATH)?);
        }
        if let Some(entry) = table.get("peers") {
            let Value::List(nodes) = &entry.node.value else {
                return Err(self.wrong(entry, PATH, r#"a list such as ["10.0.0.1", "10.0.0.2"]"#));
            };
            // `ClusterConfig::check` reports too many peers, so it is enough to read one too many.
            for (i, node) in nodes.iter().take(MAX_PEERS + 1).enumerate() {
                let path = format!("{PATH}.peers[{i}]");
                let Value::Text(peer) = &node.value else {
                    let message = format!(r#"must be "host:port" or "host", got {}"#, node.value);
                    return Err(Error::config(path, message).at_line(node.line));
                };
                self.lines.push((path, node.line));
                cluster = cluster.peer(peer);
            }
        }
        if let Some(entry) = table.get("multicast") {
            cluster = cluster.multicast(self.text(entry, PATH)?);
        }
        if let Some(entry) = table.get("interface") {
            cluster = cluster.interface(self.text(entry, PATH)?);
        }
        if let Some(entry) = table.get("multicast_ttl") {
            let ttl = self.whole(entry, "a whole number from 0 to 255")?;
            cluster = cluster.multicast_ttl(ttl);
        }
        Ok(cluster)
    }

    fn read_timing(
        &self,
        mut cluster: ClusterConfig,
        table: &ConfigTable<'_>,
    ) -> Result<ClusterConfig> {
        if let Some(entry) = table.get("period") {
            cluster = cluster.period(self.duration(entry, r#"a duration such as "100ms""#)?);
        }
        if let Some(entry) = table.get("reports") {
            cluster = cluster.reports(match &entry.node.value {
                Value::Text(text) if text == "eager" => Reports::Eager,
                Value::Text(text) if text == "periodic" => Reports::Periodic,
                _ => return Err(self.wrong(entry, PATH, r#""eager" or "periodic""#)),
            });
        }
        if let Some(entry) = table.get("tolerance")
            && !matches!(&entry.node.value, Value::Text(text) if text == "auto")
        {
            let expected = r#""auto", or a duration such as "50ms""#;
            cluster = cluster.tolerance(self.duration(entry, expected)?);
        }
        if let Some(entry) = table.get("pacing") {
            cluster = cluster.pacing(self.bool(entry, PATH)?);
        }
        if let Some(entry) = table.get("busy") {
            cluster = cluster.busy(self.bool(entry, PATH)?);
        }
        if let Some(entry) = table.get("retention") {
            cluster = cluster.retention(self.duration(entry, r#"a duration such as "15s""#)?);
        }
        if let Some(entry) = table.get("retention_bytes") {
            let expected = r#"a number of bytes, or text such as "16 MB""#;
            cluster = cluster.retention_bytes(match &entry.node.value {
                Value::Text(text) if is_number(text) => {
                    return Err(self.fault(entry, &number_as_text(text, expected)));
                }
                Value::Text(text) => bytes(text).ok_or_else(|| {
                    self.fault(entry, &format!("must be {expected}, got {}", quoted(text)))
                })?,
                _ => self.whole(entry, expected)? as usize,
            });
        }
        Ok(cluster)
    }

    fn duration(&self, entry: &Entry, expected: &str) -> Result<Duration> {
        let Value::Text(text) = &entry.node.value else {
            return Err(self.wrong(entry, PATH, expected));
        };
        parse_duration(text).map_err(|reason| {
            self.fault(entry, &format!("must be {expected}, got {}: {reason}", quoted(text)))
        })
    }

    fn whole(&self, entry: &Entry, expected: &str) -> Result<u32> {
        match entry.node.value {
            Value::Number(n) if n.fract() == 0.0 && (0.0..=u32::MAX.into()).contains(&n) => {
                Ok(n as u32)
            }
            _ => Err(self.wrong(entry, PATH, expected)),
        }
    }

    fn fault(&self, entry: &Entry, message: &str) -> Error {
        let line = entry.node.line.or(entry.line);
        Error::config(join(PATH, &entry.key), message).at_line(line)
    }
}

/// Parses a number of bytes that has a unit.
fn bytes(text: &str) -> Option<usize> {
    match Size::parse(text).ok()? {
        // More than usize can hold is above the maximum, which a later check reports.
        Size::Bytes(bytes) => Some(usize::try_from(bytes).unwrap_or(usize::MAX)),
        Size::Tags(_) => None,
    }
}
