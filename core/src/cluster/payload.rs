//! Data of the host program that nodes broadcast to each other. The engine does not interpret it.

use std::sync::Arc;

/// The maximum number of bytes of a payload: the longest body less the longest number and age.
pub const MAX_PAYLOAD: usize = super::wire::MAX_BODY - 20;

/// A source and receiver of payloads. Each payload is broadcast twice and delivered once.
pub trait Payload: Send {
    /// Called at every period of the exchange, with the number of peers that are up.
    fn tick(&mut self, _peers: usize) {}

    /// Called regularly while another process of the table runs the exchange.
    fn standby(&mut self) {}

    /// The next payload to broadcast, of at most [`MAX_PAYLOAD`] bytes.
    fn take(&mut self) -> Option<Vec<u8>>;

    /// Receives a payload that a peer took `age_ns` ago. Returns false if it is malformed.
    fn apply(&mut self, age_ns: u64, bytes: &[u8]) -> bool;
}

/// Makes the payload source of a new engine.
pub(crate) type MakePayload = Arc<dyn Fn() -> Box<dyn Payload> + Send + Sync>;
