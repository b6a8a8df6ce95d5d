//! Replaces `cluster/` if the feature is off. The types have no values.

use crate::table::Table;

/// A cluster, as seen from one node. This type has no values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterStats {}

impl ClusterStats {
    /// Always `None`.
    pub(crate) fn if_begun(_: &Table, _: u64) -> Option<ClusterStats> {
        None
    }
}

pub(crate) mod node {
    use crate::config::ClusterConfig;
    use crate::limit::bucket::Scale;
    use crate::throttle::Throttle;

    /// A node of a cluster. This type has no values.
    pub(crate) enum ClusterNode {}

    impl ClusterNode {
        pub(crate) fn new(config: ClusterConfig) -> ClusterNode {
            match config {}
        }

        pub(crate) fn fingerprint_key(&self) -> [u64; 2] {
            match *self {}
        }

        pub(crate) fn tolerance(&self, _: &Scale) -> (u64, bool) {
            match *self {}
        }

        pub(crate) fn is_paced(&self) -> bool {
            match *self {}
        }

        pub(crate) fn attach(&self, _: &Throttle) {
            match *self {}
        }

        pub(crate) fn start(&self) {
            match *self {}
        }

        pub(crate) fn disable(&self) {
            match *self {}
        }

        pub(crate) fn stop(&self) {
            match *self {}
        }
    }
}
