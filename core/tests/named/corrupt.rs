//! Files that are not a valid table of this user are never used. The error names the file.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;

use dthrottle::ErrorKind;
use dthrottle::internals;

use crate::folder::Folder;
use crate::{balance, file, open, slow, take, web};

const PAGE: u64 = 4096;
/// Offsets of fields in the last page of a table.
const MAGIC: u64 = 0;
const LAYOUT: u64 = 8;
const LINES: u64 = 16;
const BOOT: u64 = 48;

/// Corrupts a table's file.
type Corrupt = fn(&Path);

/// Creates a table in which a tag has used 3 of 10 units.
fn used(folder: &Folder) -> std::path::PathBuf {
    let throttle = open(web(folder), 10).unwrap();
    take(&throttle, "tag", 3);
    file(folder, "web")
}

/// Changes a field of a table's header.
fn change(path: &Path, field: u64, change: impl Fn(u64) -> u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let at = file.metadata().unwrap().len() - PAGE + field;
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at).unwrap();
    let value = change(u64::from_le_bytes(bytes));
    file.write_all_at(&value.to_le_bytes(), at).unwrap();
}

/// The error of opening the table, which names its file.
fn open_error(folder: &Folder) -> String {
    let error = open(web(folder), 10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::File);
    let message = error.to_string();
    assert!(message.contains(file(folder, "web").to_str().unwrap()), "{message}");
    message
}

#[test]
fn an_unchanged_table_is_used() {
    let folder = Folder::new();
    let path = used(&folder);
    change(&path, MAGIC, |same| same);
    let throttle = open(web(&folder), 10).unwrap();
    assert_eq!(balance(&throttle, "tag"), 7);
    assert_eq!(throttle.warnings(), [""; 0]);
}

#[test]
fn a_file_that_is_not_a_table_is_an_error() {
    let faults: [(&str, Corrupt); 7] = [
        ("empty", |path| fs::write(path, "").unwrap()),
        ("text", |path| fs::write(path, "x".repeat(100)).unwrap()),
        ("a page of zeroes", |path| fs::write(path, [0; PAGE as usize]).unwrap()),
        ("wrong magic", |path| change(path, MAGIC, |magic| magic ^ 1)),
        ("fewer lines than it has", |path| change(path, LINES, |lines| lines - 64)),
        ("more lines than there can be", |path| change(path, LINES, |_| u64::MAX)),
        ("no lines", |path| change(path, LINES, |_| 0)),
    ];
    for (what, make) in faults {
        let folder = Folder::new();
        let path = used(&folder);
        make(&path);
        let message = open_error(&folder);
        assert!(message.contains("not a table"), "{what}: {message}");
        assert!(path.exists(), "{what}: the file was removed");
    }
}

/// Fails at once. Reserving all free space before failing would take a minute.
#[test]
fn a_table_larger_than_the_file_system_is_not_created() {
    let folder = Folder::new();
    let throttle = open(web(&folder).bytes(1 << 46), 10).unwrap();
    let [warning] = throttle.warnings() else { panic!("expected one warning") };
    assert!(warning.contains("bytes): No space left on device"), "{warning}");
}

#[test]
fn a_truncated_table_is_an_error() {
    let folder = Folder::new();
    let path = used(&folder);
    let whole = fs::read(&path).unwrap();
    let header = &whole[whole.len() - PAGE as usize..];
    // Without its last page; a part of a page; only the header, which declares more pages.
    for bytes in [&whole[..whole.len() - PAGE as usize], &whole[..whole.len() - 1], header] {
        fs::write(&path, bytes).unwrap();
        assert!(open_error(&folder).contains("not a table"));
    }
}

#[test]
fn a_table_with_another_layout_is_an_error_and_stays() {
    let folder = Folder::new();
    let path = used(&folder);
    change(&path, LAYOUT, |layout| layout + 1);
    let message = open_error(&folder);
    assert!(message.contains("another version of dthrottle (layout 9, not 8)"));
    assert!(message.contains("use another name"), "{message}");
    // The number of an early layout, which had shorter files.
    change(&path, LAYOUT, |_| 2);
    assert!(open_error(&folder).contains("(layout 2, not 8)"));
    change(&path, LAYOUT, |_| 8);
    assert_eq!(balance(&open(web(&folder), 10).unwrap(), "tag"), 7, "the table is unchanged");
}

#[test]
fn a_link_is_not_followed() {
    let folder = Folder::new();
    let path = used(&folder);
    let elsewhere = file(&folder, "elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(open_error(&folder).contains("it is a link"));
    fs::remove_file(&path).unwrap();
    // A dangling link, where a table could be created.
    symlink(folder.path().to_string() + "/nowhere", &path).unwrap();
    open_error(&folder);
    assert_eq!(folder.files().len(), 2);
}

#[test]
fn a_file_that_is_not_a_regular_file_is_an_error() {
    let folder = Folder::new();
    let path = file(&folder, "web");
    fs::create_dir(&path).unwrap();
    open_error(&folder);
    fs::remove_dir(&path).unwrap();
    let fifo = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the string lives until the call returns.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    assert!(open_error(&folder).contains("not a plain file"));
}

/// Times of an earlier boot are meaningless.
#[test]
fn a_table_of_an_earlier_boot_is_replaced() {
    let folder = Folder::new();
    let path = used(&folder);
    change(&path, BOOT, |boot| boot ^ 1);
    let before = File::open(&path).unwrap().metadata().unwrap().ino();
    let throttle = open(web(&folder), 10).unwrap();
    assert_eq!(balance(&throttle, "tag"), 10);
    assert_eq!(throttle.warnings(), [""; 0]);
    let after = fs::metadata(&path).unwrap().ino();
    assert_ne!(before, after);
    assert_eq!(folder.files().len(), 1);
    take(&throttle, "tag", 1);
    assert_eq!(balance(&open(web(&folder), 10).unwrap(), "tag"), 9, "the new one is kept");
}

/// A process that cannot read the boot ID does not assume an earlier boot. Listing removes nothing.
#[test]
fn a_table_with_an_unknown_boot_id_is_kept() {
    let folder = Folder::new();
    let path = used(&folder);
    let listed = || dthrottle::tables::list(None, Some(folder.path())).unwrap();
    let faults: Vec<_> = listed().into_iter().map(|table| table.fault).collect();
    assert_eq!(faults, [None]);
    change(&path, BOOT, |boot| boot ^ 1);
    let fault = listed()[0].fault.clone().unwrap();
    assert!(fault.contains("earlier start"), "{fault}");
    assert!(path.exists());
    change(&path, BOOT, |_| 0);
    change(&path, BOOT + 8, |_| 0);
    assert_eq!(balance(&open(web(&folder), 10).unwrap(), "tag"), 7, "the table is kept");
}

/// The size of an existing table wins. A process that configures another size gets a warning.
#[test]
fn the_size_of_an_existing_table_wins() {
    let folder = Folder::new();
    let first = open(web(&folder).tags(200_000), 10).unwrap();
    take(&first, "tag", 3);
    let same = open(web(&folder).tags(200_000), 10).unwrap();
    let bare = dthrottle::TableConfig::named("web").dir(folder.path());
    let unsaid = dthrottle::Throttle::builder().table(bare).rule(slow(10)).build().unwrap();
    let other = open(web(&folder).tags(500_000), 10).unwrap();
    for throttle in [&same, &unsaid, &other] {
        assert_eq!(internals::table_size(throttle), internals::table_size(&first));
        assert_eq!(balance(throttle, "tag"), 7);
    }
    assert_eq!((same.warnings(), unsaid.warnings()), (&[][..], &[][..]));
    let [warning] = other.warnings() else { panic!("{:?}", other.warnings()) };
    for part in ["\"web\"", "200001", "500001", "dthrottle table resize web"] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
}
