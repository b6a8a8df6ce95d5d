//! The cluster methods of `Builder` and `Throttle`.

use std::sync::Arc;

use super::access::Exchange;
use super::{ClusterEvent, ClusterStats, events_since};
use crate::builder::Builder;
use crate::config::ClusterConfig;
use crate::throttle::Throttle;

impl Builder {
    /// Makes the throttle a node of this cluster. By default it belongs to none.
    #[must_use]
    pub fn cluster(mut self, cluster: ClusterConfig) -> Builder {
        self.config.set_cluster(cluster);
        self
    }
}

impl Throttle {
    /// The table as the exchange uses it.
    pub(crate) fn exchange(&self) -> Exchange {
        Exchange::new(Arc::clone(&self.0.host), self.domains())
    }

    /// Returns the peers of this node and the counters of its exchange, or `None` if the throttle
    /// belongs to no cluster. All processes of a named table get the same values.
    ///
    /// ```
    /// use dthrottle::{ClusterConfig, Rule, Throttle};
    ///
    /// let cluster = ClusterConfig::new("web").listen("127.0.0.1:0");
    /// let throttle = Throttle::builder().rule(Rule::per_second(10)).cluster(cluster).build()?;
    /// let stats = throttle.cluster_stats().expect("the throttle is a node of a cluster");
    /// assert!(stats.peers.is_empty());
    /// assert_eq!(stats.count("reports_received"), 0);
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    pub fn cluster_stats(&self) -> Option<ClusterStats> {
        self.node().map(|_| ClusterStats::of(&self.host().table, self.host().now()))
    }

    /// Returns the stored events of the cluster whose number is greater than `after`, oldest first.
    /// Start with 0, and pass the number of the last event to get only newer ones. The table stores
    /// a limited number of events. The list is empty if the throttle belongs to no cluster.
    pub fn events(&self, after: u64) -> Vec<ClusterEvent> {
        self.node().map_or_else(Vec::new, |_| events_since(&self.exchange(), after))
    }
}
