//! A process that opens a table as it is told, perhaps as another user or with file systems of its
//! own, and then does what each line of its input says.

use std::ffi::CString;
use std::fs;
use std::io::{self, BufRead};
use std::os::unix::fs::{PermissionsExt, chown};
use std::ptr::null;

use dthrottle::Throttle;

use super::Outcome;
use super::options::Options;
use super::rules;

/// Prints the throttle's warnings, then `open`; or `error` and why there is none.
pub(crate) fn run(options: &Options) -> Outcome {
    mount(options)?;
    become_user(options)?;
    let throttle = match options.builder()?.build() {
        Ok(throttle) => throttle,
        Err(error) => {
            println!("error {error}");
            return Ok(());
        }
    };
    for warning in throttle.warnings() {
        println!("warning {warning}");
    }
    println!("open");
    for line in io::stdin().lock().lines() {
        answer(&throttle, &line?)?;
    }
    Ok(())
}

fn answer(throttle: &Throttle, line: &str) -> Outcome {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        // How many of so many requests pass.
        ["allow", tag, tries] => {
            let mut admitted = 0;
            for _ in 0..tries.parse()? {
                admitted += u64::from(throttle.allow(tag)?);
            }
            println!("{admitted}");
        }
        // How many rules it got, one after another, each with a burst of one more.
        ["cycle", first, count] => {
            let count = count.parse()?;
            rules::cycle(throttle, first.parse()?, count)?;
            println!("{count}");
        }
        ["balance", tag] => println!("{}", throttle.peek(tag)?.balance),
        // How many pass of each tag, all tags in turn.
        ["spread", tags, tries] => {
            let mut admitted = vec![0_u64; tags.parse()?];
            for _ in 0..tries.parse()? {
                for (tag, count) in admitted.iter_mut().enumerate() {
                    *count += u64::from(throttle.allow(tag.to_le_bytes())?);
                }
            }
            let admitted: Vec<String> = admitted.iter().map(u64::to_string).collect();
            println!("{}", admitted.join(" "));
        }
        // How many of so many new tags are remembered.
        ["fill", tags] => {
            for tag in 0..tags.parse()? {
                throttle.allow(u64::to_le_bytes(tag))?;
            }
            println!("{}", throttle.stats().buckets);
        }
        _ => return Err(format!("cannot {line:?}").into()),
    }
    Ok(())
}

/// Changes the file system for this process only: `mount=FOLDER:SIZE[:ro|:MODE]` puts a small one
/// in the place of a folder, `readonly=FOLDER` forbids writing to one, `hide=FILE` empties a file,
/// `own=FOLDER:UID:GID:MODE` makes a folder that belongs to others.
pub(crate) fn mount(options: &Options) -> Outcome {
    if ["mount", "readonly", "hide"].iter().all(|key| options.get(key).is_none()) {
        return Ok(());
    }
    // SAFETY: a plain system call, in a process with one thread.
    done(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let (none, root) = (CString::new("none")?, CString::new("/")?);
    let flags = libc::MS_PRIVATE | libc::MS_REC;
    // SAFETY: the texts live until the call is over. Nobody else is to see the new mounts.
    done(unsafe { libc::mount(none.as_ptr(), root.as_ptr(), null(), flags, null()) })?;
    for mount in options.all("mount") {
        let mut parts = mount.split(':');
        let (dir, size) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (flags, mode) = match parts.next() {
            Some("ro") => (libc::MS_RDONLY, "1777"),
            mode => (0, mode.unwrap_or("1777")),
        };
        let (dir, kind) = (CString::new(dir)?, CString::new("tmpfs")?);
        let data = CString::new(format!("size={size},mode={mode}"))?;
        let (to, kind, data) = (dir.as_ptr(), kind.as_ptr(), data.as_ptr());
        // SAFETY: as above.
        done(unsafe { libc::mount(none.as_ptr(), to, kind, flags, data.cast()) })?;
    }
    for own in options.all("own") {
        let [dir, uid, gid, mode] = own.split(':').collect::<Vec<_>>()[..] else {
            return Err(format!("own={own}").into());
        };
        fs::create_dir_all(dir)?;
        chown(dir, Some(uid.parse()?), Some(gid.parse()?))?;
        fs::set_permissions(dir, fs::Permissions::from_mode(u32::from_str_radix(mode, 8)?))?;
    }
    for folder in options.all("readonly") {
        bind(folder, folder, libc::MS_BIND)?;
        bind(folder, folder, libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY)?;
    }
    for file in options.all("hide") {
        bind("/dev/null", file, libc::MS_BIND)?;
    }
    Ok(())
}

fn bind(from: &str, to: &str, flags: libc::c_ulong) -> Outcome {
    let (from, to) = (CString::new(from)?, CString::new(to)?);
    // SAFETY: the texts live until the call is over.
    done(unsafe { libc::mount(from.as_ptr(), to.as_ptr(), null(), flags, null()) })?;
    Ok(())
}

/// Goes on as another user: `uid=NUMBER`, with a group of the same number, and perhaps one more:
/// `member=NUMBER`.
fn become_user(options: &Options) -> Outcome {
    if options.get("uid").is_none() {
        return Ok(());
    }
    let uid = u32::try_from(options.number("uid")?)?;
    let member = match options.get("member") {
        Some(group) => group.parse()?,
        None => uid,
    };
    // SAFETY: one number to read, for the call only.
    done(unsafe { libc::setgroups(1, &raw const member) })?;
    // SAFETY: a plain system call.
    done(unsafe { libc::setgid(uid) })?;
    // SAFETY: as above.
    done(unsafe { libc::setuid(uid) })?;
    Ok(())
}

fn done(code: i32) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
