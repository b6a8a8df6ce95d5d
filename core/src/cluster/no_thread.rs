//! Replaces `udp/node_thread.rs` on systems where the host program runs the engine itself.

use std::sync::OnceLock;

use crate::cluster::payload::MakePayload;
use crate::config::ClusterConfig;
use crate::throttle::Throttle;

/// A thread that is never started.
#[derive(Default)]
pub(crate) struct NodeThread {}

#[allow(clippy::unused_self, reason = "same signatures as udp/node_thread.rs")]
impl NodeThread {
    pub(crate) fn prepare(&self, _: &ClusterConfig, _: &Throttle) {}

    pub(crate) fn start(&self, _: &OnceLock<MakePayload>) {}

    pub(crate) fn disable(&self) {}

    pub(crate) fn stop(&self) {}
}
