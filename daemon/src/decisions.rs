//! Decisions by domain, under the rules of the configuration.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use dthrottle::{Config, Domain};

use crate::state::Count;

/// Counts stay when a reload removes their domain, so a domain that comes back goes on counting.
#[derive(Default)]
pub(crate) struct Decisions {
    /// Of the default domain. Counted without a lock, because most checks are for it.
    default: DomainCounts,
    others: RwLock<HashMap<String, DomainCounts>>,
}

#[derive(Default)]
struct DomainCounts {
    allowed: Count,
    refused: Count,
}

impl Decisions {
    /// Adds checks that were allowed and refused in a domain.
    #[inline]
    pub(crate) fn add(&self, domain: &Domain, allowed: u64, refused: u64) {
        if domain.name() == Config::DEFAULT {
            self.default.add(allowed, refused);
        } else {
            self.add_other(domain.name(), allowed, refused);
        }
    }

    fn add_other(&self, name: &str, allowed: u64, refused: u64) {
        if let Some(counts) = self.others.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return counts.add(allowed, refused);
        }
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        others.entry(name.to_string()).or_default().add(allowed, refused);
    }

    /// The checks that were allowed and refused in a domain since the start.
    pub(crate) fn get(&self, domain: &Domain) -> (u64, u64) {
        if domain.name() == Config::DEFAULT {
            return self.default.get();
        }
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        others.get(domain.name()).map(DomainCounts::get).unwrap_or_default()
    }
}

impl DomainCounts {
    fn add(&self, allowed: u64, refused: u64) {
        // Usually one of the two is 0, and an atomic addition is saved.
        if allowed > 0 {
            self.allowed.add(allowed);
        }
        if refused > 0 {
            self.refused.add(refused);
        }
    }

    fn get(&self) -> (u64, u64) {
        (self.allowed.get(), self.refused.get())
    }
}
