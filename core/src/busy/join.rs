//! Shares the busy responses of all processes that use a named table, by the exchange of a throttle
//! with that table.

use std::sync::Arc;

use super::named::existing;
use super::open::open;
use super::share::BusyPayload;
use crate::clock::Clock;
use crate::cluster::node::ClusterNode;
use crate::cluster::payload::Payload;
use crate::config::TableConfig;
use crate::error::Result;

/// How often an exchange searches for memory that another process may have created.
const SEARCH_INTERVAL_NS: u64 = 1_000_000_000;

/// Lets the engine of a throttle share the busy responses of the processes that use its named
/// table. Returns warnings.
pub(crate) fn join_cluster(
    node: &ClusterNode,
    table: &TableConfig,
    key: [u64; 2],
) -> Result<Vec<String>> {
    if node.shares_busy() {
        let opened = open(table, Clock::System, Some(key))?;
        // If there is a warning, no other process shares this memory.
        if opened.warnings.is_empty() {
            node.set_payload(BusyPayload::maker(Arc::new(opened.store), true));
        }
        return Ok(opened.warnings);
    }
    let table = table.clone();
    node.set_payload(Arc::new(move || {
        Box::new(LazyPayload { table: table.clone(), key, found: None, search_at: 0 })
    }));
    Ok(Vec::new())
}

/// The payload source of a throttle whose own settings do not share busy responses. A busy throttle
/// with the same named table may share them, so this source searches for its memory.
struct LazyPayload {
    table: TableConfig,
    key: [u64; 2],
    found: Option<BusyPayload>,
    search_at: u64,
}

impl Payload for LazyPayload {
    fn tick(&mut self, peers: usize) {
        let now = Clock::System.now_ns();
        if self.found.is_none() && now >= self.search_at {
            self.search_at = now.saturating_add(SEARCH_INTERVAL_NS);
            self.found = existing(&self.table, self.key)
                .map(|store| BusyPayload::new(Arc::new(store), false));
        }
        if let Some(found) = &mut self.found {
            found.tick(peers);
        }
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        self.found.as_mut()?.take()
    }

    fn apply(&mut self, age_ns: u64, bytes: &[u8]) -> bool {
        self.found.as_mut().is_none_or(|found| found.apply(age_ns, bytes))
    }
}
