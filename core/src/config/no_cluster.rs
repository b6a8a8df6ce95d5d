//! Stands for `cluster.rs` where the feature is off: no configuration has a cluster.

use super::Config;
use super::reader::{Names, Reader};
use super::value::Entry;
use crate::error::{Error, Result};

/// A cluster. There are no values of this type: that needs the feature `cluster`.
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
        let message = "clusters need the feature `cluster` of the crate dthrottle; \
                       enable it, or leave this out";
        Err(Error::config("cluster", message).at_line(entry.line))
    }
}
