//! SNAPSHOT: the buckets that are not full, and which reports they include.
//!
//! A snapshot may consist of several datagrams. Each contains some of the windows, followed by some
//! of the buckets.

use super::bytes::{
    ENTRY, ORIGIN, Reader, entry_len, put_entry, put_origin, put_ranges, put_varint,
    ranges_fitting, varint_len,
};
use super::{DropCause, MAX_BODY};
use crate::cluster::{Origin, Window};

/// The greatest used part of a bucket, in sixteenths of a unit.
pub const MAX_USED: u64 = 1 << 60;

/// Part number and number of parts.
const HEAD: usize = 2 + 2;
/// A section's rule and number of entries.
const SECTION: usize = 8 + 2;
/// The number of sections, which follows after the windows.
const SECTIONS: usize = 1;

/// Writes the body of a part: windows, then entries.
#[derive(Clone, Debug)]
pub struct SnapshotWriter {
    body: Vec<u8>,
    /// The position of the number of sections in the body. `None` while there are only windows.
    sections_at: Option<usize>,
    open: Option<OpenSection>,
}

/// The section to which entries are added.
#[derive(Clone, Copy, Debug)]
struct OpenSection {
    rule: u64,
    entries: u16,
    /// The position of the number of entries in the body.
    at: usize,
}

impl Default for SnapshotWriter {
    fn default() -> SnapshotWriter {
        SnapshotWriter::new()
    }
}

impl SnapshotWriter {
    /// Creates an empty part.
    pub fn new() -> SnapshotWriter {
        let body = Vec::with_capacity(MAX_BODY);
        let mut writer = SnapshotWriter { body, sections_at: None, open: None };
        writer.clear();
        writer
    }

    /// Starts a new part.
    pub fn clear(&mut self) {
        self.body.clear();
        // The number of windows, as one byte: fewer than 128 fit into a datagram.
        self.body.extend_from_slice(&[0; HEAD + 1]);
        self.sections_at = None;
        self.open = None;
    }

    /// Returns true if the part contains nothing.
    pub fn is_empty(&self) -> bool {
        self.body[HEAD] == 0 && self.sections_at.is_none()
    }

    /// Adds a window. Returns false and changes nothing if there is no space, or if there are
    /// entries already.
    ///
    /// If the part is empty and the window does not fit, its oldest gaps are left out: these
    /// reports count as applied and are never charged. So an empty part accepts any window.
    pub fn push_window(&mut self, origin: Origin, window: &Window) -> bool {
        if self.sections_at.is_some() {
            return false;
        }
        let fixed = ORIGIN + varint_len(window.top()) + SECTIONS;
        let room = MAX_BODY.saturating_sub(self.body.len() + fixed);
        let missing = window.missing();
        let fitting = ranges_fitting(missing.iter().rev(), room);
        if (fitting < missing.len() || room == 0) && !self.is_empty() {
            return false;
        }
        put_origin(&mut self.body, origin);
        put_varint(&mut self.body, window.top());
        put_ranges(&mut self.body, &missing[missing.len() - fitting..]);
        self.body[HEAD] += 1;
        true
    }

    /// Adds the used part of a bucket, in sixteenths of a unit, in a new section if the rule
    /// differs from the last one. Returns false and changes nothing if there is no space.
    pub fn push(&mut self, rule: u64, fingerprint: u64, used_16ths: u64) -> bool {
        let used = used_16ths.min(MAX_USED);
        let end = self.body.len() + entry_len(used);
        match &mut self.open {
            Some(open) if open.rule == rule => {
                if end > MAX_BODY {
                    return false;
                }
                open.entries += 1;
                let (at, entries) = (open.at, open.entries);
                self.body[at..at + 2].copy_from_slice(&entries.to_be_bytes());
            }
            _ => {
                let at = self.sections_at.unwrap_or(self.body.len());
                let sections = self.body.get(at).copied().unwrap_or(0);
                let end = end + SECTION + if self.sections_at.is_none() { SECTIONS } else { 0 };
                if end > MAX_BODY || sections == u8::MAX {
                    return false;
                }
                self.open_section(at, sections + 1, rule);
            }
        }
        put_entry(&mut self.body, fingerprint, used);
        true
    }

    /// Writes the header of a section with one entry.
    fn open_section(&mut self, sections_at: usize, sections: u8, rule: u64) {
        if self.sections_at.is_none() {
            self.body.push(0);
        }
        self.sections_at = Some(sections_at);
        self.body[sections_at] = sections;
        self.body.extend_from_slice(&rule.to_be_bytes());
        self.open = Some(OpenSection { rule, entries: 1, at: self.body.len() });
        self.body.extend_from_slice(&1_u16.to_be_bytes());
    }

    /// Returns the body of this part, which are numbered from 0. May be called again to set another
    /// number of parts.
    pub fn finish(&mut self, part: u16, parts: u16) -> &[u8] {
        debug_assert!(part < parts, "part {part} of {parts}");
        if self.sections_at.is_none() {
            self.sections_at = Some(self.body.len());
            self.body.push(0);
        }
        self.body[..2].copy_from_slice(&part.to_be_bytes());
        self.body[2..HEAD].copy_from_slice(&parts.to_be_bytes());
        &self.body
    }
}

/// A parsed part, which has been checked completely.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The number of the part, from 0.
    pub part: u16,
    /// The number of parts, at least 1.
    pub parts: u16,
    windows: usize,
    windows_at: Reader<'a>,
    sections: u8,
    sections_at: Reader<'a>,
}

impl<'a> Snapshot<'a> {
    /// Parses a body.
    pub fn parse(body: &'a [u8]) -> Result<Snapshot<'a>, DropCause> {
        let mut reader = Reader::new(body);
        let (part, parts) = (reader.u16()?, reader.u16()?);
        if part >= parts {
            return Err(DropCause::Malformed);
        }
        let windows = reader.count(ORIGIN + 2)?;
        let windows_at = reader;
        for _ in 0..windows {
            window(&mut reader)?;
        }
        let sections = reader.u8()?;
        let sections_at = reader;
        for _ in 0..sections {
            section(&mut reader)?;
        }
        Ok(Snapshot { part, parts, windows, windows_at, sections, sections_at })
    }

    /// Returns the windows, which state the reports that the buckets include.
    pub fn windows(&self) -> impl Iterator<Item = (Origin, Window)> + use<'a> {
        let mut reader = self.windows_at;
        (0..self.windows).map_while(move |_| window(&mut reader).ok())
    }

    /// Returns the buckets by rule.
    pub fn sections(&self) -> impl Iterator<Item = (u64, Buckets<'a>)> + use<'a> {
        let mut reader = self.sections_at;
        (0..self.sections).map_while(move |_| section(&mut reader).ok())
    }
}

fn window(reader: &mut Reader<'_>) -> Result<(Origin, Window), DropCause> {
    let (origin, top) = (reader.origin()?, reader.varint()?);
    Ok((origin, Window::new(top, reader.ranges(top)?)))
}

fn section<'a>(reader: &mut Reader<'a>) -> Result<(u64, Buckets<'a>), DropCause> {
    let (rule, count) = (reader.u64()?, reader.u16()?);
    let buckets = Buckets { reader: *reader, left: count };
    for _ in 0..count {
        let (_, used) = reader.entry()?;
        if used > MAX_USED {
            return Err(DropCause::Malformed);
        }
    }
    Ok((rule, buckets))
}

/// The buckets of one rule: fingerprint and used part, in sixteenths of a unit.
#[derive(Clone, Debug)]
pub struct Buckets<'a> {
    reader: Reader<'a>,
    left: u16,
}

impl Iterator for Buckets<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        self.left = self.left.checked_sub(1)?;
        self.reader.entry().ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.into(), Some(self.left.into()))
    }
}

impl ExactSizeIterator for Buckets<'_> {}

const _: () = assert!(MAX_BODY / ENTRY < u16::MAX as usize, "no section has too many entries");

#[cfg(test)]
mod tests;
