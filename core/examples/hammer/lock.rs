//! The lock of the exchange: which process gets it when its holder is killed, and what children
//! inherit.

use std::error::Error;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use dthrottle::internals;
use dthrottle::internals::access::{Exchange, Lock};
use dthrottle::{Rule, Throttle};

use super::TaskResult;
use super::options::Options;
use super::process::{End, Random, fork, fork_orphan, shared};

/// Sent by the holder when it holds the lock.
const READY: u8 = 2;
/// Time in which a child runs even on a busy machine, in milliseconds.
const TIMEOUT_MS: usize = 10_000;
/// The answer if there is no file to lock.
const NO_FILE: u8 = 9;

/// Kills a holder whose own child lives on. Prints whether the child holds the inherited lock. Then
/// prints whether this process and the child could take the lock: while the holder lives, right
/// after its death, and the child again after this process has released the lock.
pub(crate) fn orphan(options: &Options) -> TaskResult {
    let exchange = internals::exchange(&clustered(options)?);
    let (mut answers, answer_pipe) = io::pipe()?;
    let (orders, mut order_pipe) = io::pipe()?;
    let holder = fork(|| {
        let lock = take(&exchange).expect("the lock is free");
        let child = fork_orphan(|| {
            // Close the inherited end of the pipe, so that the child reads the end of file when
            // this process ends.
            // SAFETY: a plain system call.
            unsafe { libc::close(order_pipe.as_raw_fd()) };
            while let Ok(order) = next(&mut &orders) {
                let answer = match order {
                    b'?' => is_taken(&exchange),
                    _ => u8::from(lock.is_held()),
                };
                (&answer_pipe).write_all(&[answer]).expect("the pipe works");
            }
        });
        child.expect("fork works");
        assert!(lock.is_held());
        (&answer_pipe).write_all(&[READY]).expect("the pipe works");
        loop {
            thread::park();
        }
    })?;
    drop((orders, answer_pipe));
    assert_eq!(next(&mut answers)?, READY);
    let mut ask = |order: u8| -> io::Result<u8> {
        order_pipe.write_all(&[order])?;
        next(&mut answers)
    };
    println!("shadow {}", ask(b'!')?);
    println!("alive {} {}", is_taken(&exchange), ask(b'?')?);
    holder.kill();
    if holder.wait()? != End::Signal(libc::SIGKILL) {
        return Err("the holder must be killed by SIGKILL".into());
    }
    let lock = take(&exchange);
    println!("dead {} {}", u8::from(lock.is_some()), ask(b'?')?);
    drop(lock);
    println!("back {}", ask(b'?')?);
    Ok(())
}

/// Prints whether the lock can be taken after all descriptors were closed, as daemons do, and after
/// they were replaced by other files. With a named table, also prints that one process can take the
/// lock after the name was removed.
pub(crate) fn closed(options: &Options) -> TaskResult {
    let exchange = internals::exchange(&clustered(options)?);
    for (name, reused) in [("closed", false), ("reused", true)] {
        let (mut answers, answer_pipe) = io::pipe()?;
        let child = fork(|| {
            let keep = answer_pipe.as_raw_fd();
            for fd in (3..100).filter(|fd| *fd != keep) {
                // SAFETY: a plain system call. Nothing that is closed here is used again.
                unsafe { libc::close(fd) };
                if reused {
                    // SAFETY: as above. Standard error serves as an arbitrary file.
                    unsafe { libc::dup2(2, fd) };
                }
            }
            let answer = exchange.try_lock().map_or(NO_FILE, |lock| u8::from(lock.is_some()));
            (&answer_pipe).write_all(&[answer]).expect("the pipe works");
        })?;
        drop(answer_pipe);
        println!("{name} {}", next(&mut answers)?);
        child.wait()?;
    }
    if let Some(name) = options.get("name") {
        dthrottle::tables::remove(name, None, options.get("dir"))?;
        let lock = take(&exchange);
        println!("removed {} {}", u8::from(lock.is_some()), is_taken(&exchange));
    }
    Ok(())
}

/// One thread forks all the time, and the children live on. Another takes and releases the lock.
/// Prints the number of children, how often the lock could not be taken, and whether it can be
/// taken in the end.
pub(crate) fn race(options: &Options) -> TaskResult {
    let exchange = internals::exchange(&clustered(options)?);
    let rounds = options.number("rounds")?;
    let (mut held, mut tries) = (0, 0);
    let (end, alive) = io::pipe()?;
    let fds = (end.as_raw_fd(), alive.as_raw_fd());
    let forks = thread::spawn(move || fork_idle(rounds, fds));
    while !forks.is_finished() {
        tries += 1;
        held += u64::from(take(&exchange).is_none());
    }
    let children = forks.join().map_err(|_| "the forks failed")?;
    println!("children {}", children.len());
    println!("tries {tries}");
    println!("held {held}");
    println!("after {}", is_taken(&exchange));
    drop(alive);
    for child in children {
        // SAFETY: a null pointer means that no status is written.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
    Ok(())
}

/// Like `race`, in a child that is killed after a while. Prints how often the child held the lock
/// when it was killed, and how often no other process could take the lock while the grandchildren
/// lived.
pub(crate) fn killed(options: &Options) -> TaskResult {
    let exchange = internals::exchange(&clustered(options)?);
    let rounds = options.number("rounds")?;
    let holding = &shared(1)?[0];
    let mut random = Random::new(rounds);
    let (mut tries, mut held) = (0, 0);
    for _ in 0..rounds {
        let (end, alive) = io::pipe()?;
        let fds = (end.as_raw_fd(), alive.as_raw_fd());
        holding.store(0, Ordering::SeqCst);
        let holder = fork(|| {
            thread::spawn(move || fork_idle(10, fds));
            for _ in 0..10 {
                holding.store(0, Ordering::SeqCst);
                let lock = take(&exchange);
                holding.store(u64::from(lock.is_some()), Ordering::SeqCst);
                thread::sleep(Duration::from_micros(100));
            }
            loop {
                thread::park();
            }
        })?;
        thread::sleep(Duration::from_micros(random.below(3000) as u64));
        holder.kill();
        holder.wait()?;
        tries += holding.load(Ordering::SeqCst);
        // A grandchild that was just being forked must first run to close the inherited descriptor.
        let is_free = (0..TIMEOUT_MS).any(|_| {
            let lock = take(&exchange);
            thread::sleep(Duration::from_millis(u64::from(lock.is_none())));
            lock.is_some()
        });
        held += u64::from(!is_free);
        drop(alive);
    }
    println!("tries {tries}");
    println!("held {held}");
    Ok(())
}

/// Forks children that wait until this process or its end of a pipe is gone. They only make system
/// calls, as is required in the child of a process with threads.
fn fork_idle(count: u64, (end, alive): (RawFd, RawFd)) -> Vec<libc::pid_t> {
    let mut children = Vec::new();
    let mut random = Random::new(count);
    for _ in 0..count {
        thread::sleep(Duration::from_micros(random.below(500) as u64));
        // SAFETY: the child only makes system calls.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: a plain system call.
            unsafe { libc::close(alive) };
            // SAFETY: the pipe is empty, so nothing is written to the null pointer.
            unsafe { libc::read(end, std::ptr::null_mut(), 1) };
            // SAFETY: a plain system call.
            unsafe { libc::_exit(0) };
        }
        if pid > 0 {
            children.push(pid);
        }
    }
    children
}

fn clustered(options: &Options) -> Result<Throttle, Box<dyn Error>> {
    let builder = Throttle::builder().rule(Rule::unlimited());
    Ok(builder.table(options.table()?.clustered()).build()?)
}

fn take(exchange: &Exchange) -> Option<Lock> {
    exchange.try_lock().expect("the table has a file to lock")
}

fn is_taken(exchange: &Exchange) -> u8 {
    u8::from(take(exchange).is_some())
}

fn next(pipe: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    pipe.read_exact(&mut byte)?;
    Ok(byte[0])
}
