//! What a node sees of its cluster, and what happened in it.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::errors::guard;

/// A cluster, as seen from one node.
#[pyclass(frozen, eq, hash, module = "dthrottle")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClusterStats {
    /// This node.
    #[pyo3(get)]
    node: u64,
    /// The present life of its exchange; 0: it has not begun.
    #[pyo3(get)]
    incarnation: u64,
    /// The process that runs the exchange, or did last.
    #[pyo3(get)]
    pid: u64,
    peers: Vec<PeerStats>,
    counts: Vec<(&'static str, u64)>,
}

/// A peer, as seen from one node. Times are seconds.
#[pyclass(frozen, eq, hash, module = "dthrottle")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PeerStats {
    /// Which node.
    #[pyo3(get)]
    node: u64,
    /// In which life.
    #[pyo3(get)]
    incarnation: u64,
    /// Where it is, as host:port; None: that is not known.
    #[pyo3(get)]
    address: Option<String>,
    /// up, down, left, or known if it has yet to become a member.
    #[pyo3(get)]
    state: &'static str,
    age: Duration,
    delay: Duration,
    /// Reports applied.
    #[pyo3(get)]
    received: u64,
    /// Those of them that had been missing at first.
    #[pyo3(get)]
    repaired: u64,
    /// Reports that are lost for good.
    #[pyo3(get)]
    lost: u64,
}

/// Something that happened in the cluster.
#[pyclass(frozen, eq, hash, module = "dthrottle")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct ClusterEvent {
    /// Counts events, from 1.
    #[pyo3(get)]
    number: u64,
    age: Duration,
    /// peer_up, peer_down, peer_left, rules_differ, reports_lost or warm_start.
    #[pyo3(get)]
    kind: &'static str,
    /// The peer it is about.
    #[pyo3(get)]
    node: u64,
    /// How many, where that matters.
    #[pyo3(get)]
    value: u64,
}

impl From<dthrottle::ClusterStats> for ClusterStats {
    fn from(stats: dthrottle::ClusterStats) -> ClusterStats {
        ClusterStats {
            node: stats.node,
            incarnation: stats.incarnation,
            pid: stats.pid,
            peers: stats.peers.into_iter().map(Into::into).collect(),
            counts: stats.counts,
        }
    }
}

impl From<dthrottle::PeerStats> for PeerStats {
    fn from(peer: dthrottle::PeerStats) -> PeerStats {
        PeerStats {
            node: peer.node,
            incarnation: peer.incarnation,
            address: peer.address.map(|address| address.to_string()),
            state: peer.state,
            age: peer.age,
            delay: peer.delay,
            received: peer.received,
            repaired: peer.repaired,
            lost: peer.lost,
        }
    }
}

impl From<dthrottle::ClusterEvent> for ClusterEvent {
    fn from(event: dthrottle::ClusterEvent) -> ClusterEvent {
        ClusterEvent {
            number: event.number,
            age: event.age,
            kind: event.kind,
            node: event.node,
            value: event.value,
        }
    }
}

#[pymethods]
impl ClusterStats {
    /// Peers that are there or were lately: a new list.
    #[getter]
    fn peers(&self) -> Vec<PeerStats> {
        self.peers.clone()
    }

    /// What was counted, by name: a new dict.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard(|| {
            let counts = PyDict::new(py);
            self.counts.iter().try_for_each(|(name, count)| counts.set_item(name, count))?;
            Ok(counts)
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(|| {
            let peers = self.peers.iter().map(|peer| peer.__repr__(py));
            Ok(format!(
                "ClusterStats(node={}, incarnation={}, pid={}, peers=[{}], counts={})",
                self.node,
                self.incarnation,
                self.pid,
                peers.collect::<PyResult<Vec<_>>>()?.join(", "),
                self.counts(py)?.repr()?.to_string_lossy(),
            ))
        })
    }
}

#[pymethods]
impl PeerStats {
    /// How many seconds ago it was last heard.
    #[getter]
    fn age(&self) -> f64 {
        self.age.as_secs_f64()
    }

    /// How many seconds a datagram takes.
    #[getter]
    fn delay(&self) -> f64 {
        self.delay.as_secs_f64()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(|| {
            let address = match &self.address {
                Some(address) => PyString::new(py, address).repr()?.to_string_lossy().into(),
                None => "None".to_string(),
            };
            Ok(format!(
                "PeerStats(node={}, incarnation={}, address={address}, state='{}', age={:?}, \
                 delay={:?}, received={}, repaired={}, lost={})",
                self.node,
                self.incarnation,
                self.state,
                self.age(),
                self.delay(),
                self.received,
                self.repaired,
                self.lost,
            ))
        })
    }
}

#[pymethods]
impl ClusterEvent {
    /// How many seconds ago it happened.
    #[getter]
    fn age(&self) -> f64 {
        self.age.as_secs_f64()
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| {
            Ok(format!(
                "ClusterEvent(number={}, age={:?}, kind='{}', node={}, value={})",
                self.number,
                self.age(),
                self.kind,
                self.node,
                self.value,
            ))
        })
    }
}
