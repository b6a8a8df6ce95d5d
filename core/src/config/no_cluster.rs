//! Replaces `cluster.rs` when the feature `cluster` is off: a configuration cannot have a cluster.

use super::Config;
use super::reader::{Names, Reader};
use super::value::Entry;
use crate::error::{Error, Result};

/// A cluster. Without the feature `cluster` this type has no values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterConfig {}

impl ClusterConfig {
    pub(crate) fn check(&self, _: Names) -> Result<()> {
        match *self {}
    }

    pub(crate) fn busy_by_default(self) -> ClusterConfig {
        match self {}
    }

    pub(crate) fn load(&mut self) -> Result<Option<String>> {
        match *self {}
    }
}

impl Config {
    pub(crate) fn set_cluster(&mut self, cluster: ClusterConfig) {
        match cluster {}
    }
}

impl Reader {
    pub(super) fn cluster(&mut self, entry: &Entry) -> Result<ClusterConfig> {
        let message = "needs the cargo feature `cluster` of the crate dthrottle; \
                       enable it, or remove this table";
        Err(Error::config("cluster", message).at_line(entry.line))
    }
}
