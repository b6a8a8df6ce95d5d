//! What a throttle can do in a cluster.

use std::sync::Arc;

use super::access::Exchange;
use super::{ClusterEvent, ClusterStats, events_since};
use crate::builder::Builder;
use crate::config::ClusterConfig;
use crate::throttle::Throttle;

impl Builder {
    /// The cluster that this node belongs to; none by default.
    #[must_use]
    pub fn cluster(mut self, cluster: ClusterConfig) -> Builder {
        self.config.set_cluster(cluster);
        self
    }
}

impl Throttle {
    /// The table for an exchanger.
    pub(crate) fn exchange(&self) -> Exchange {
        Exchange::new(Arc::clone(&self.0.host), self.domains())
    }

    /// The cluster, as this node sees it; `None` if the throttle belongs to none.
    pub fn cluster_stats(&self) -> Option<ClusterStats> {
        self.node().map(|_| ClusterStats::of(&self.host().table, self.host().now()))
    }

    /// What happened in the cluster after the event with this number, as far as it is still known:
    /// begin with 0, and go on with the number of the last one.
    pub fn events(&self, after: u64) -> Vec<ClusterEvent> {
        self.node().map_or_else(Vec::new, |_| events_since(&self.exchange(), after))
    }
}
