//! The keys of a cluster, and sealing and opening of datagrams.
//!
//! The cipher is XChaCha20-Poly1305. The nonce is the sender and its packet number, and the whole
//! envelope is authenticated. All keys are derived from the secrets by HKDF-SHA256.

use std::fmt;

use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305};
use hkdf::Hkdf;
use sha2::{Digest, Sha256};

use super::{
    DatagramKind, DropCause, ENVELOPE, Envelope, MAGIC, MAX_BODY, MAX_DATAGRAM, TAG, VERSION,
};
use crate::cluster::Origin;

const SALT: &[u8] = b"dthrottle 1";

/// The input from which keys are derived.
#[derive(Clone, Copy)]
pub enum Secrets<'a> {
    /// A secret that only the nodes of the cluster know.
    Shared {
        /// The cluster's name.
        cluster: &'a str,
        /// The key of the fingerprints is derived from this. It cannot be changed later.
        secret: &'a [u8],
        /// Datagrams are sealed with the first key and opened with any of them. If the list is
        /// empty, a packet key is derived from `secret`.
        packet_keys: &'a [Vec<u8>],
    },
    /// No secret: anyone who knows the cluster's name can read and forge datagrams.
    Open {
        /// The cluster's name.
        cluster: &'a str,
    },
}

/// The keys of a cluster.
pub struct Keys {
    cluster: [u8; 2],
    fingerprint_key: [u64; 2],
    sealing: Sealing,
}

enum Sealing {
    With { first: PacketKey, others: Vec<PacketKey> },
    Without,
}

struct PacketKey {
    /// Not unique: there are 256 ids, so two keys may have the same one.
    id: u8,
    cipher: XChaCha20Poly1305,
}

impl Keys {
    /// Derives the keys.
    pub fn new(secrets: &Secrets<'_>) -> Keys {
        let (cluster, secret, packet_keys) = match *secrets {
            Secrets::Shared { cluster, secret, packet_keys } => (cluster, secret, packet_keys),
            Secrets::Open { cluster } => (cluster, &[][..], &[][..]),
        };
        let mut keys =
            packet_keys.iter().map(|key| PacketKey::new(derive(key, "packet key", cluster)));
        let first =
            keys.next().unwrap_or_else(|| PacketKey::new(derive(secret, "packet", cluster)));
        let others = keys.collect();
        Keys {
            cluster: cluster_id(cluster),
            fingerprint_key: fingerprint_key(secret, cluster),
            sealing: Sealing::With { first, others },
        }
    }

    /// Creates keys that neither encrypt nor authenticate, for simulated clusters. Datagrams have
    /// the same size and structure as sealed ones. No other keys open them.
    pub fn unsealed(cluster: &str) -> Keys {
        Keys {
            cluster: cluster_id(cluster),
            fingerprint_key: fingerprint_key(&[], cluster),
            sealing: Sealing::Without,
        }
    }

    /// Returns the key of the fingerprints.
    pub fn fingerprint_key(&self) -> [u64; 2] {
        self.fingerprint_key
    }

    /// Writes a sealed datagram into `out`, which is cleared first.
    pub fn seal(&self, envelope: &Envelope, body: &[u8], out: &mut Vec<u8>) {
        debug_assert!(body.len() <= MAX_BODY, "a body of {} bytes", body.len());
        let key = match &self.sealing {
            Sealing::With { first, .. } => Some(first),
            Sealing::Without => None,
        };
        let head = envelope.to_bytes(key.map_or(0, |key| key.id), self.cluster);
        out.clear();
        out.reserve(ENVELOPE + body.len() + TAG);
        out.extend_from_slice(&head);
        out.extend_from_slice(body);
        let tag = key.map_or([0; TAG], |key| key.encrypt(&head, &mut out[ENVELOPE..]));
        out.extend_from_slice(&tag);
    }

    /// Opens a datagram in place. A datagram that is not authentic is not changed.
    ///
    /// # Errors
    /// The cause for which the datagram is dropped.
    pub fn open<'a>(&self, datagram: &'a mut [u8]) -> Result<(Envelope, &'a [u8]), DropCause> {
        if datagram.len() > MAX_DATAGRAM {
            return Err(DropCause::Long);
        }
        let (head, rest) = datagram.split_first_chunk_mut::<ENVELOPE>().ok_or(DropCause::Short)?;
        let (body, tag) = rest.split_last_chunk_mut::<TAG>().ok_or(DropCause::Short)?;
        if head[..2] != MAGIC {
            return Err(DropCause::Magic);
        }
        if head[2] != VERSION {
            return Err(DropCause::Version);
        }
        if head[6..8] != self.cluster {
            return Err(DropCause::Cluster);
        }
        self.decrypt(head, body, tag)?;
        let word = |at| head[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let envelope = Envelope {
            kind: DatagramKind::of(head[3]).ok_or(DropCause::Kind)?,
            flags: head[4],
            sender: Origin { node: word(8), incarnation: word(16) },
            packet: word(24),
        };
        Ok((envelope, body))
    }

    fn decrypt(
        &self,
        head: &[u8; ENVELOPE],
        body: &mut [u8],
        tag: &[u8; TAG],
    ) -> Result<(), DropCause> {
        let id = head[5];
        let Sealing::With { first, others } = &self.sealing else {
            return match id {
                0 if *tag == [0; TAG] => Ok(()),
                0 => Err(DropCause::Auth),
                _ => Err(DropCause::Key),
            };
        };
        let mut cause = DropCause::Key;
        for key in std::iter::once(first).chain(others).filter(|key| key.id == id) {
            if key.decrypt(head, body, tag) {
                return Ok(());
            }
            cause = DropCause::Auth;
        }
        Err(cause)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl fmt::Debug for Secrets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl PacketKey {
    fn new(key: [u8; 32]) -> PacketKey {
        let [id] = derive(&key, "key id", "");
        PacketKey { id, cipher: XChaCha20Poly1305::new(&key.into()) }
    }

    fn encrypt(&self, head: &[u8; ENVELOPE], body: &mut [u8]) -> [u8; TAG] {
        self.cipher
            .encrypt_inout_detached(&nonce(head).into(), head, body.into())
            .expect("a body is far shorter than 256 GB")
            .into()
    }

    /// Decrypts the body in place. Returns false, and changes nothing, if it is not authentic.
    fn decrypt(&self, head: &[u8; ENVELOPE], body: &mut [u8], tag: &[u8; TAG]) -> bool {
        self.cipher
            .decrypt_inout_detached(&nonce(head).into(), head, body.into(), tag.into())
            .is_ok()
    }
}

/// The nonce: sender and packet number.
fn nonce(head: &[u8; ENVELOPE]) -> [u8; 24] {
    let mut nonce = [0; 24];
    nonce.copy_from_slice(&head[8..]);
    nonce
}

fn cluster_id(name: &str) -> [u8; 2] {
    let hash = Sha256::digest(name.as_bytes());
    [hash[0], hash[1]]
}

fn fingerprint_key(secret: &[u8], cluster: &str) -> [u64; 2] {
    let key = u128::from_be_bytes(derive(secret, "fingerprint", cluster));
    [(key >> 64) as u64, key as u64]
}

/// Derives a key. The zero byte separates the purpose from the cluster's name.
fn derive<const N: usize>(secret: &[u8], purpose: &str, cluster: &str) -> [u8; N] {
    let mut key = [0; N];
    Hkdf::<Sha256>::new(Some(SALT), secret)
        .expand_multi_info(&[purpose.as_bytes(), &[0], cluster.as_bytes()], &mut key)
        .expect("far less than 255 hashes");
    key
}

#[cfg(test)]
mod tests;
