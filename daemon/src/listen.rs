//! Listening sockets: opened here, or passed by systemd.

use std::env;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use listenfd::ListenFd;
use rustix::net::sockopt;

use crate::config::{ListenAddress, Settings};
use crate::socket_file::{self, SocketFile};

/// The size of the send buffer of an HTTP connection. Linux doubles it.
const HTTP_BUFFER: usize = 64 * 1024;
/// After this time without data, the system probes whether the client still exists.
#[cfg(target_os = "linux")]
const KEEPALIVE: Duration = Duration::from_secs(120);

/// All listening sockets.
#[derive(Default)]
pub(crate) struct Listeners {
    pub(crate) unix: Vec<UnixListener>,
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) resp: Option<TcpListener>,
    pub(crate) http: Option<TcpListener>,
    /// The listeners for accounting and for control.
    pub(crate) smockron: Option<(TcpListener, TcpListener)>,
    /// The files of the Unix sockets that this daemon opened.
    pub(crate) files: Vec<SocketFile>,
}

impl Listeners {
    /// Takes the sockets of systemd and opens the others of the settings. A socket of systemd is
    /// for lines unless its name is `resp` or `http`. Call this before another thread starts,
    /// because it changes the umask temporarily.
    pub(crate) fn open(settings: &Settings) -> io::Result<Listeners> {
        let mut all = Listeners::from_systemd()?;
        // Sockets of systemd replace the default one.
        let default = match settings.listen.is_empty() && all.unix.is_empty() && all.tcp.is_empty()
        {
            true => Settings::default_listen()?,
            false => Vec::new(),
        };
        let addresses = if settings.listen.is_empty() { &default } else { &settings.listen };
        for address in addresses {
            match address {
                ListenAddress::Path(path) => {
                    let (listener, file) = socket_file::bind(path, settings.socket_mode)
                        .map_err(|error| with_fix("listen", path.display(), &error))?;
                    all.unix.push(listener);
                    all.files.push(file);
                }
                ListenAddress::Address(address) => all.tcp.push(bind("listen", *address)?),
            }
        }
        if let (None, Some(address)) = (&all.resp, settings.resp) {
            all.resp = Some(bind("resp", address)?);
        }
        if let (None, Some(address)) = (&all.http, settings.http) {
            all.http = Some(bind("http", address)?);
        }
        if let Some(address) = settings.smockron {
            all.smockron = Some(bind_pair(address)?);
        }
        // `Settings::check` has checked the address in the configuration, but not one of systemd.
        if let (Some(http), None) = (&all.http, &settings.token)
            && let address = http.local_addr()?
            && !address.ip().is_loopback()
        {
            let message = "other machines can reach this socket of systemd; set daemon.token";
            return Err(with_fix("http", address, &io::Error::other(message)));
        }
        if let Some(http) = &all.http {
            // Connections inherit the size from their listener. Events for a page that does not
            // read fill this buffer, which the system would otherwise grow to megabytes.
            sockopt::set_socket_send_buffer_size(http, HTTP_BUFFER)?;
        }
        all.prepare()?;
        Ok(all)
    }

    fn from_systemd() -> io::Result<Listeners> {
        let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut fds = ListenFd::from_env();
        let mut all = Listeners::default();
        for index in 0..fds.len() {
            let name = names.next().unwrap_or_default();
            if let Ok(Some(listener)) = fds.take_unix_listener(index) {
                all.unix.push(listener);
            } else if let Some(listener) = fds.take_tcp_listener(index)? {
                match name {
                    "resp" => all.resp = Some(listener),
                    "http" => all.http = Some(listener),
                    _ => all.tcp.push(listener),
                }
            }
        }
        Ok(all)
    }

    fn prepare(&self) -> io::Result<()> {
        self.unix.iter().try_for_each(|listener| listener.set_nonblocking(true))?;
        let smockron = self.smockron.iter().flat_map(|(accounting, control)| [accounting, control]);
        let mut tcp = self.tcp.iter().chain(&self.resp).chain(&self.http).chain(smockron);
        tcp.try_for_each(|listener| {
            // Connections inherit it from their listener. Without it, a connection would stay for
            // ever if its client disappears without closing it.
            sockopt::set_socket_keepalive(listener, true)?;
            #[cfg(target_os = "linux")]
            sockopt::set_tcp_keepidle(listener, KEEPALIVE)?;
            listener.set_nonblocking(true)
        })
    }

    /// The addresses of all listeners, for the log.
    pub(crate) fn describe(&self) -> Description {
        let address = |listener: &TcpListener| match listener.local_addr() {
            Ok(address) => address.to_string(),
            Err(_) => "?".into(),
        };
        let path = |listener: &UnixListener| {
            let address = listener.local_addr().ok();
            let path = address.as_ref().and_then(|address| address.as_pathname());
            path.map_or("a socket without a path".into(), |path| path.display().to_string())
        };
        Description {
            lines: self.unix.iter().map(path).chain(self.tcp.iter().map(address)).collect(),
            resp: self.resp.as_ref().map(address),
            http: self.http.as_ref().map(address),
            smockron: self.smockron.as_ref().map(|(accounting, _)| address(accounting)),
        }
    }

    /// The addresses that other machines can use without a token.
    pub(crate) fn reachable_without_token(&self) -> Vec<SocketAddr> {
        let smockron = self.smockron.iter().map(|(accounting, _)| accounting);
        let tcp = self.tcp.iter().chain(&self.resp).chain(smockron);
        let addresses = tcp.filter_map(|tcp| tcp.local_addr().ok());
        addresses.filter(|address| !address.ip().is_loopback()).collect()
    }
}

pub(crate) struct Description {
    pub(crate) lines: Vec<String>,
    pub(crate) resp: Option<String>,
    pub(crate) http: Option<String>,
    pub(crate) smockron: Option<String>,
}

fn bind(key: &str, address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| with_fix(key, address, &error))
}

/// Binds two consecutive ports. With port 0, any two that are free.
fn bind_pair(address: SocketAddr) -> io::Result<(TcpListener, TcpListener)> {
    for attempt in 1.. {
        let first = bind("smockron", address)?;
        let mut next = first.local_addr()?;
        let second = next.port().checked_add(1).map(|port| {
            next.set_port(port);
            bind("smockron", next)
        });
        match second {
            Some(Ok(second)) => return Ok((first, second)),
            Some(Err(error)) if address.port() != 0 || attempt == 100 => return Err(error),
            _ => {}
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

fn with_fix(key: &str, address: impl std::fmt::Display, error: &io::Error) -> io::Error {
    let fix = match error.kind() {
        io::ErrorKind::AddrInUse => "; stop the program that uses it, or choose another",
        io::ErrorKind::AddrNotAvailable => "; choose an address of this machine",
        io::ErrorKind::PermissionDenied => "; choose one that this user may use",
        _ => "",
    };
    io::Error::new(error.kind(), format!("daemon.{key}: {address}: {error}{fix}"))
}
