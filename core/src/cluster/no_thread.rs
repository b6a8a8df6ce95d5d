//! Stands for `udp/node_thread.rs` where there is no thread for the exchange: the host runs the engine.

use std::sync::OnceLock;

use crate::cluster::payload::MakePayload;
use crate::config::ClusterConfig;
use crate::throttle::Throttle;

/// Has nothing to run.
#[derive(Default)]
pub(crate) struct NodeThread {}

#[allow(clippy::unused_self, reason = "as the other one has it")]
impl NodeThread {
    pub(crate) fn prepare(&self, _: &ClusterConfig, _: &Throttle) {}

    pub(crate) fn start(&self, _: &OnceLock<MakePayload>) {}

    pub(crate) fn disable(&self) {}

    pub(crate) fn stop(&self) {}
}
