//! The tags that were refused most recently and most often, in bounded memory. The table cannot
//! list them, because it stores only fingerprints of tags.
//!
//! The counts are approximate: a thread that finds the lock taken skips its refusal. Counting does
//! not allocate.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

const SETS: usize = 256;
/// A tag has this many possible entries. A new tag replaces the one with the lowest count and
/// inherits its count, so the count of a tag that is refused often is never too low.
const WAYS: usize = 4;
/// The stored bytes of a tag.
const MAX_TAG: usize = 64;

pub(crate) struct Refused {
    hasher: RandomState,
    entries: Mutex<Box<[[Entry; WAYS]]>>,
}

#[derive(Clone, Copy)]
struct Entry {
    count: u64,
    hash: u64,
    len: u8,
    name: [u8; MAX_TAG],
}

impl Default for Refused {
    fn default() -> Refused {
        let empty = Entry { count: 0, hash: 0, len: 0, name: [0; MAX_TAG] };
        Refused { hasher: RandomState::new(), entries: Mutex::new([[empty; WAYS]; SETS].into()) }
    }
}

impl Refused {
    pub(crate) fn add(&self, tag: &[u8]) {
        let hash = self.hasher.hash_one(tag);
        let Ok(mut entries) = self.entries.try_lock() else { return };
        let set = &mut entries[hash as usize % SETS];
        if let Some(entry) = set.iter_mut().find(|entry| entry.hash == hash && entry.count > 0) {
            entry.count += 1;
            return;
        }
        let Some(least) = set.iter_mut().min_by_key(|entry| entry.count) else { return };
        let len = tag.len().min(MAX_TAG);
        least.name[..len].copy_from_slice(&tag[..len]);
        (least.hash, least.len, least.count) = (hash, len as u8, least.count + 1);
    }

    /// Halves all counts, so that recent refusals count more.
    pub(crate) fn age(&self) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.as_flattened_mut().iter_mut().for_each(|entry| entry.count /= 2);
    }

    /// The most refused tags with their counts. The tags are truncated, and hidden characters are
    /// escaped.
    pub(crate) fn top(&self, count: usize) -> Vec<(String, u64)> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut all: Vec<Entry> = entries.into_iter().flatten().filter(|p| p.count > 0).collect();
        all.sort_unstable_by_key(|entry| std::cmp::Reverse((entry.count, entry.hash)));
        all.truncate(count);
        let name = |entry: &Entry| escaped(&entry.name[..entry.len.into()]);
        all.iter().map(|entry| (name(entry), entry.count)).collect()
    }
}

/// Escapes characters that are invisible or change the order of others, so that a tag cannot look
/// like another one or like several.
fn escaped(tag: &[u8]) -> String {
    let mut out = String::new();
    for c in String::from_utf8_lossy(tag).chars() {
        match is_hidden(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out
}

/// Returns true for control characters, line separators, and the characters with the Unicode
/// property `Default_Ignorable_Code_Point`, which include the marks of writing direction.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_refused_tags_are_found_among_many_others() {
        let refused = Refused::default();
        for round in 0..1000_u32 {
            for tag in ["alice", "bob", "bob"] {
                refused.add(tag.as_bytes());
            }
            (0..20).for_each(|other| refused.add(format!("{round}-{other}").as_bytes()));
        }
        let top = refused.top(2);
        assert_eq!((top[0].0.as_str(), top[1].0.as_str()), ("bob", "alice"));
        assert!((2000..2300).contains(&top[0].1), "{top:?}");
        refused.age();
        assert_eq!(refused.top(1)[0].1, top[0].1 / 2);
    }

    #[test]
    fn a_tag_is_truncated_and_may_be_invalid_utf_8() {
        let refused = Refused::default();
        refused.add(&[b'x'; 1000]);
        refused.add(b"\xff");
        let names: Vec<String> = refused.top(9).into_iter().map(|(name, _)| name).collect();
        assert!(names.contains(&"x".repeat(MAX_TAG)) && names.contains(&"\u{fffd}".into()));
    }

    #[test]
    fn hidden_characters_are_escaped() {
        for (tag, seen) in [
            ("alice\u{202e}nimda", "alice\\u{202e}nimda"),
            ("a\u{200b}\u{2066}\u{feff}", "a\\u{200b}\\u{2066}\\u{feff}"),
            ("a\u{1b}[2J\u{9b}\0", "a\\u{1b}[2J\\u{9b}\\u{0}"),
            ("a\u{2028}b\u{e0041}\u{fe0f}", "a\\u{2028}b\\u{e0041}\\u{fe0f}"),
            ("grün नमस्ते \"\\'", "grün नमस्ते \"\\'"),
        ] {
            assert_eq!(escaped(tag.as_bytes()), seen);
        }
    }
}
