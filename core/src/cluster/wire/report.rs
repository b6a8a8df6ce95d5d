//! REPORT: the hits that an origin admitted, by rule and fingerprint.
//!
//! Hits are counted in quanta, so that an entry stays small even if costs are large.

use super::bytes::{
    ENTRY, ORIGIN, Reader, entry_len, put_entry, put_origin, put_varint, varint_len,
};
use super::{DropCause, MAX_BODY};
use crate::cluster::Origin;

/// Flag of the envelope: the report belongs to another origin, with which the body begins.
pub const RELAYED: u8 = 1;
/// The maximum number of hits of an entry, in quanta.
pub const MAX_HITS: u64 = u32::MAX as u64;
/// The greatest quantum.
pub const MAX_QUANTUM: u64 = 1 << 40;
/// The greatest age in microseconds, about twelve days, which is far longer than reports are
/// stored.
pub const MAX_AGE_US: u64 = 1 << 40;

/// First number, span, number of sections.
const HEAD: usize = 8 + 4 + 1;
/// A section's rule and number of entries, which precede its varints.
const SECTION: usize = 8 + 2;
/// The maximum number of bytes of an age. A report may be sent again later and by another node, so
/// space is reserved for a greater age and for the origin.
const LONGEST_AGE: usize = varint_len(MAX_AGE_US);
/// The maximum number of bytes of a section header.
pub const MAX_SECTION: usize = SECTION + varint_len(MAX_QUANTUM) + LONGEST_AGE;
/// The maximum number of bytes of an entry.
pub const MAX_ENTRY: usize = entry_len(MAX_HITS << 1 | 1);
/// The maximum number of bytes of a report before its sections.
pub const MAX_HEAD: usize = ORIGIN + HEAD;

/// The header of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The rule's identity: a hash of the names of domain and rule.
    pub rule: u64,
    /// Units per hit.
    pub quantum: u64,
    /// The age of the first of these hits when the report was sent, in microseconds.
    pub age_us: u64,
}

/// The hits of one tag under one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportEntry {
    /// The fingerprint of the tag. The lowest byte is always zero.
    pub fingerprint: u64,
    /// The number of hits, in quanta, at least 1.
    pub hits: u64,
    /// Whether less than a tenth of the burst was left at the origin.
    pub saturated: bool,
}

/// Writes the body of a report, entry by entry.
#[derive(Clone, Debug)]
pub struct ReportWriter {
    body: Vec<u8>,
    relayed: bool,
    open: Option<OpenSection>,
    sections: u8,
    /// Bytes that are reserved for sending the report again.
    spare: usize,
}

/// The section to which entries are added.
#[derive(Clone, Copy, Debug)]
struct OpenSection {
    header: Section,
    entries: u16,
    /// The position of the number of entries in the body.
    at: usize,
}

impl Default for ReportWriter {
    fn default() -> ReportWriter {
        ReportWriter::new()
    }
}

impl ReportWriter {
    /// Creates an empty report of the sender.
    pub fn new() -> ReportWriter {
        let body = Vec::with_capacity(MAX_BODY);
        let mut writer = ReportWriter { body, relayed: false, open: None, sections: 0, spare: 0 };
        writer.clear(None);
        writer
    }

    /// Starts a new report: of the sender, or of the origin `relayed`.
    pub fn clear(&mut self, relayed: Option<Origin>) {
        self.body.clear();
        self.relayed = relayed.is_some();
        if let Some(origin) = relayed {
            put_origin(&mut self.body, origin);
        }
        self.body.extend_from_slice(&[0; HEAD]);
        self.open = None;
        self.sections = 0;
        self.spare = if self.relayed { 0 } else { ORIGIN };
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.sections == 0
    }

    /// Returns the flags of the envelope for this body.
    pub fn flags(&self) -> u8 {
        if self.relayed { RELAYED } else { 0 }
    }

    /// Adds an entry, in a new section if `section` differs from the last one. Returns false and
    /// changes nothing if there is no space. An entry without hits is ignored.
    #[inline]
    pub fn push(&mut self, section: &Section, entry: ReportEntry) -> bool {
        debug_assert!(entry.hits <= MAX_HITS, "{entry:?} needs a greater quantum");
        let value = entry.hits.min(MAX_HITS) << 1 | u64::from(entry.saturated);
        if entry.hits == 0 {
            return true;
        }
        let room = MAX_BODY.saturating_sub(self.body.len() + self.spare);
        match &mut self.open {
            Some(open) if open.header == *section => {
                if entry_len(value) > room {
                    return false;
                }
                open.entries += 1;
                let (at, entries) = (open.at, open.entries);
                self.body[at..at + 2].copy_from_slice(&entries.to_be_bytes());
            }
            _ => {
                if !self.open_section(section, room.saturating_sub(entry_len(value))) {
                    return false;
                }
            }
        }
        put_entry(&mut self.body, entry.fingerprint, value);
        true
    }

    /// Writes the header of a section with one entry, if it fits.
    fn open_section(&mut self, section: &Section, room: usize) -> bool {
        debug_assert!((1..=MAX_QUANTUM).contains(&section.quantum), "{section:?}");
        let quantum = section.quantum.clamp(1, MAX_QUANTUM);
        let age_us = section.age_us.min(MAX_AGE_US);
        if SECTION + varint_len(quantum) + LONGEST_AGE > room || self.sections == u8::MAX {
            return false;
        }
        self.spare += LONGEST_AGE - varint_len(age_us);
        self.sections += 1;
        self.body.extend_from_slice(&section.rule.to_be_bytes());
        self.open = Some(OpenSection { header: *section, entries: 1, at: self.body.len() });
        self.body.extend_from_slice(&1_u16.to_be_bytes());
        put_varint(&mut self.body, quantum);
        put_varint(&mut self.body, age_us);
        true
    }

    /// Returns the body of the reports from `first` to `last`. With `padded`, it has the greatest
    /// length, so that full datagrams have equal sizes. Call `clear` before adding more.
    pub fn finish(&mut self, first: u64, last: u64, padded: bool) -> &[u8] {
        debug_assert!(first >= 1 && last >= first && last - first <= u64::from(u32::MAX));
        let span = u32::try_from(last.saturating_sub(first)).unwrap_or(u32::MAX);
        let at = if self.relayed { ORIGIN } else { 0 };
        let head = &mut self.body[at..at + HEAD];
        head[..8].copy_from_slice(&first.to_be_bytes());
        head[8..12].copy_from_slice(&span.to_be_bytes());
        head[12] = self.sections;
        if padded {
            self.body.resize(MAX_BODY, 0);
        }
        &self.body
    }
}

/// A parsed report, which has been checked completely.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The origin of the report; `None` if it is the sender.
    pub origin: Option<Origin>,
    /// The first number that it covers, at least 1.
    pub first: u64,
    /// The last number that it covers.
    pub last: u64,
    sections: u8,
    rest: Reader<'a>,
}

impl<'a> Report<'a> {
    /// Parses a body.
    pub fn parse(body: &'a [u8], flags: u8) -> Result<Report<'a>, DropCause> {
        let mut reader = Reader::new(body);
        let origin = if flags & RELAYED == 0 { None } else { Some(reader.origin()?) };
        let first = reader.u64()?;
        let last = first.checked_add(reader.u32()?.into()).ok_or(DropCause::Malformed)?;
        if first == 0 {
            return Err(DropCause::Malformed);
        }
        let sections = reader.u8()?;
        let rest = reader;
        for _ in 0..sections {
            section(&mut reader)?;
        }
        Ok(Report { origin, first, last, sections, rest })
    }

    /// Returns the sections: rule and age, with the entries.
    pub fn sections(&self) -> impl Iterator<Item = (Section, Entries<'a>)> + use<'a> {
        let mut reader = self.rest;
        (0..self.sections).map_while(move |_| section(&mut reader).ok())
    }
}

fn section<'a>(reader: &mut Reader<'a>) -> Result<(Section, Entries<'a>), DropCause> {
    let rule = reader.u64()?;
    let count = reader.u16()?;
    let (quantum, age_us) = (reader.varint()?, reader.varint()?);
    if !(1..=MAX_QUANTUM).contains(&quantum) || age_us > MAX_AGE_US {
        return Err(DropCause::Malformed);
    }
    let entries = Entries { reader: *reader, left: count };
    for _ in 0..count {
        let (_, value) = reader.entry()?;
        if !(1..=MAX_HITS).contains(&(value >> 1)) {
            return Err(DropCause::Malformed);
        }
    }
    Ok((Section { rule, quantum, age_us }, entries))
}

/// The entries of a section.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    reader: Reader<'a>,
    left: u16,
}

impl Iterator for Entries<'_> {
    type Item = ReportEntry;

    #[inline]
    fn next(&mut self) -> Option<ReportEntry> {
        self.left = self.left.checked_sub(1)?;
        let (fingerprint, value) = self.reader.entry().ok()?;
        Some(ReportEntry { fingerprint, hits: value >> 1, saturated: value & 1 == 1 })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.into(), Some(self.left.into()))
    }
}

impl ExactSizeIterator for Entries<'_> {}

const _: () = assert!(MAX_BODY / ENTRY < u16::MAX as usize, "no section has too many entries");

#[cfg(test)]
mod tests;
