//! An echo server with epoll in one thread, as the lower bound of a server's cost.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

pub(crate) const ARGUMENT: &str = "echo";
const LISTENER: u64 = u64::MAX;

pub(crate) fn serve(path: &Path) -> io::Result<()> {
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut streams: Vec<Option<UnixStream>> = Vec::new();
    let mut buffer = vec![0; 32 * 1024];
    let mut events = Vec::with_capacity(64);
    loop {
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let id = event.data.u64();
            if id == LISTENER {
                let (stream, _) = listener.accept()?;
                let data = EventData::new_u64(streams.len() as u64);
                epoll::add(&poll, &stream, data, EventFlags::IN)?;
                streams.push(Some(stream));
                continue;
            }
            let Some(stream) = &mut streams[id as usize] else { continue };
            match stream.read(&mut buffer) {
                Ok(count) if count > 0 => stream.write_all(&buffer[..count])?,
                _ => streams[id as usize] = None,
            }
        }
    }
}
