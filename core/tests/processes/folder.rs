//! A folder in memory for the files of one test.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates an empty folder that every user can write to.
    pub(crate) fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let path = loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = PathBuf::from(format!("/dev/shm/test-{}-{count}", std::process::id()));
            match fs::create_dir(&path) {
                // Left by a process that was killed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => break made.map(|()| path).unwrap(),
            }
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o1777)).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// The sorted names of all files.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
