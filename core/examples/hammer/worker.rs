//! A process that opens a table, optionally as another user or with its own mounts, and then
//! executes the commands that it reads from its input.

use std::ffi::CString;
use std::fs;
use std::io::{self, BufRead};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::ptr::null;

use dthrottle::Throttle;

use super::TaskResult;
use super::options::Options;
use super::rules;

/// Prints the throttle's warnings and then `open`, or prints `error` and the reason. `locks=none`
/// simulates a system without locks on open file descriptions, `spare=N` allows N more descriptors.
pub(crate) fn run(options: &Options) -> TaskResult {
    mount(options)?;
    become_user(options)?;
    if options.get("locks") == Some("none") {
        forbid_locks()?;
    }
    if options.get("spare").is_some() {
        limit_descriptors(options.number("spare")?)?;
    }
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

fn answer(throttle: &Throttle, line: &str) -> TaskResult {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        // The number of checks that pass, of `tries`.
        ["allow", tag, tries] => {
            let mut admitted = 0;
            for _ in 0..tries.parse()? {
                admitted += u64::from(throttle.allow(tag)?);
            }
            println!("{admitted}");
        }
        // Reloads `count` times, each time with a burst of one more. Prints `count`.
        ["cycle", first, count] => {
            let count = count.parse()?;
            rules::cycle(throttle, first.parse()?, count)?;
            println!("{count}");
        }
        // Allows `count` more descriptors from now on.
        ["spare", count] => {
            limit_descriptors(count.parse()?)?;
            println!("{count}");
        }
        // Whether a rule with this burst could be added: 1 if so, 0 if there are too few
        // descriptors, -1 after any other error.
        ["reload", burst] => match rules::cycle(throttle, burst.parse()?, 1) {
            Ok(_) => println!("1"),
            Err(error) if error.to_string().contains("Too many open files") => println!("0"),
            Err(_) => println!("-1"),
        },
        ["balance", tag] => println!("{}", throttle.peek(tag)?.balance),
        // The number of checks that pass for each tag, with all tags in turn.
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
        // The number of buckets after `tags` new tags were checked.
        ["fill", tags] => {
            for tag in 0..tags.parse()? {
                throttle.allow(u64::to_le_bytes(tag))?;
            }
            println!("{}", throttle.stats().buckets);
        }
        _ => return Err(format!("unknown command {line:?}").into()),
    }
    Ok(())
}

/// Makes `F_OFD_SETLK` fail, as on a system that does not support it.
fn forbid_locks() -> io::Result<()> {
    let step =
        |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let (load, equals) =
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_JMP | libc::BPF_JEQ);
    // Offset of the lower half of the call's second argument.
    let command = if cfg!(target_endian = "big") { 28 } else { 24 };
    let mut filter = [
        step(load, 0, 0, 0),
        step(equals, libc::SYS_fcntl as u32, 0, 3),
        step(load, command, 0, 0),
        step(equals, libc::F_OFD_SETLK as u32, 0, 1),
        step(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32, 0, 0),
        step(libc::BPF_RET, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a plain system call.
    done(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    // SAFETY: the filter lives until the call returns.
    let filtered = unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program, 0, 0)
    };
    done(filtered)
}

/// Lets this process open this many more descriptors.
fn limit_descriptors(spare: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is written only during the call.
    done(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    let set = |count: u64| {
        let limit = libc::rlimit { rlim_cur: count, ..limit };
        // SAFETY: the structure is read only during the call.
        done(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })
    };
    set(limit.rlim_max)?;
    let next = fs::File::open("/dev/null")?.as_raw_fd();
    set(next as u64 + spare)
}

/// Changes the file system for this process only: `mount=FOLDER:SIZE[:ro|:MODE]` mounts a small
/// file system on a folder, `readonly=FOLDER` makes a folder read-only, `hide=FILE` empties a file,
/// `own=FOLDER:UID:GID:MODE` creates a folder with another owner.
pub(crate) fn mount(options: &Options) -> TaskResult {
    if ["mount", "readonly", "hide"].iter().all(|key| options.get(key).is_none()) {
        return Ok(());
    }
    // SAFETY: a plain system call, in a process with one thread.
    done(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let (none, root) = (CString::new("none")?, CString::new("/")?);
    let flags = libc::MS_PRIVATE | libc::MS_REC;
    // SAFETY: the strings live until the call returns. The mounts become private to this process.
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
            return Err(format!("`own` must be FOLDER:UID:GID:MODE, got {own}").into());
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

fn bind(from: &str, to: &str, flags: libc::c_ulong) -> TaskResult {
    let (from, to) = (CString::new(from)?, CString::new(to)?);
    // SAFETY: the strings live until the call returns.
    done(unsafe { libc::mount(from.as_ptr(), to.as_ptr(), null(), flags, null()) })?;
    Ok(())
}

/// Changes to another user: `uid=NUMBER`, with a group of the same number, or `member=NUMBER`.
fn become_user(options: &Options) -> TaskResult {
    if options.get("uid").is_none() {
        return Ok(());
    }
    let uid = u32::try_from(options.number("uid")?)?;
    let member = match options.get("member") {
        Some(group) => group.parse()?,
        None => uid,
    };
    // SAFETY: one number that is read only during the call.
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
