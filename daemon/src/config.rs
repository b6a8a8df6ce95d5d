//! The daemon's own part of the configuration: the table `[daemon]`, and flags that replace its
//! keys.
//!
//! The core reads the rest of the file. Errors in both parts name the line, the field and the fix.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, io};

use dthrottle::config::{ConfigTable, Entry, Names, Reader, Value, parse_duration, read_secret};
use dthrottle::{Config, Error, ErrorKind, Result, Rule};

/// The default name of the table. Libraries that give this name share the daemon's table.
pub(crate) const TABLE: &str = "dthrottled";
const MIN_TOKEN_LEN: usize = 16;
const MAX_TOKEN_LEN: usize = 4096;

const KEYS: &[&str] = &[
    "listen",
    "socket_mode",
    "http",
    "token",
    "resp",
    "smockron",
    "smockron_max_ahead",
    "max_connections",
    "max_line",
    "max_delay",
    "write_timeout",
    "workers",
];

/// The settings of the daemon itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) listen: Vec<ListenAddress>,
    pub(crate) socket_mode: u32,
    pub(crate) http: Option<SocketAddr>,
    pub(crate) token: Option<String>,
    pub(crate) resp: Option<SocketAddr>,
    /// The address for accounting; control is on the next port.
    pub(crate) smockron: Option<SocketAddr>,
    /// How far ahead of the daemon's clock the timestamp of a gatekeeper may be.
    pub(crate) smockron_max_ahead: Duration,
    /// The limit for each listener of lines and RESP.
    pub(crate) max_connections: usize,
    pub(crate) max_line: usize,
    /// The longest delay that a check may accept.
    pub(crate) max_delay: Duration,
    pub(crate) write_timeout: Duration,
    /// `None` is one for each core.
    pub(crate) workers: Option<usize>,
}

/// The address of a listener for lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    Path(PathBuf),
    Address(SocketAddr),
}

impl Settings {
    /// The defaults.
    pub(crate) fn defaults() -> Settings {
        Settings {
            listen: Vec::new(),
            socket_mode: 0o660,
            http: None,
            token: None,
            resp: None,
            smockron: None,
            smockron_max_ahead: Duration::from_secs(60),
            max_connections: 10_000,
            max_line: 8192,
            max_delay: Duration::from_secs(60),
            write_timeout: Duration::from_secs(10),
            workers: None,
        }
    }

    /// Reads the configuration of throttle and daemon.
    pub(crate) fn from_toml(text: &str) -> Result<(Config, Settings)> {
        let (mut config, daemon) = Config::with_daemon(text)?;
        // Other processes share the table by its default name.
        config.name_table(TABLE, false);
        let settings = match daemon {
            None => Settings::defaults(),
            Some(entry) => {
                let (settings, warning) = Settings::read(&entry)?;
                warning.into_iter().for_each(|warning| config.add_warning(warning));
                settings
            }
        };
        Ok((config, settings))
    }

    /// Lets a daemon without rules start if it answers RESP, because calls give their own rules.
    pub(crate) fn allow_no_rules(&self, config: &mut Config) {
        if self.resp.is_some() {
            config.add_rule(Config::DEFAULT, Rule::unlimited());
        }
    }

    /// The settings, and a warning if every user can read the token.
    fn read(entry: &Entry) -> Result<(Settings, Option<String>)> {
        let reader = Reader { names: Names::Snake, lines: Vec::new() };
        let table = reader.table(&entry.node, "daemon", &[KEYS])?;
        let mut settings = Settings::defaults();
        let keys = Keys { reader, table };
        if let Some(entry) = keys.table.get("listen") {
            let nodes = match &entry.node.value {
                Value::List(nodes) if !nodes.is_empty() => nodes.as_slice(),
                _ => std::slice::from_ref(&entry.node),
            };
            for node in nodes {
                let Value::Text(text) = &node.value else {
                    let fix = r#"a path, an address with a port, or a list of them"#;
                    return Err(keys.reader.wrong(entry, "daemon", fix));
                };
                settings.listen.push(
                    ListenAddress::parse(text).map_err(|m| config_error("listen", node.line, m))?,
                );
            }
        }
        if let Some(entry) = keys.table.get("socket_mode") {
            let text = keys.reader.text(entry, "daemon")?;
            let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
            settings.socket_mode = mode.ok_or_else(|| {
                let message = format!(r#"must be an octal mode such as "0660", got {text:?}"#);
                config_error("socket_mode", entry.node.line, message)
            })?;
        }
        if let Some(address) = keys.address("http")? {
            settings.http = address;
        }
        if let Some(address) = keys.address("resp")? {
            settings.resp = address;
        }
        if let Some(address) = keys.address("smockron")? {
            settings.smockron = address;
        }
        let (token, warning) = keys.token()?;
        settings.token = token;
        if let Some(number) = keys.number("max_connections", 1..=1_000_000)? {
            settings.max_connections = number as usize;
        }
        if let Some(number) = keys.number("max_line", 64..=1 << 20)? {
            settings.max_line = number as usize;
        }
        settings.workers = keys.number("workers", 1..=256)?.map(|number| number as usize);
        if let Some(time) = keys.duration("max_delay", Duration::ZERO)? {
            settings.max_delay = time;
        }
        if let Some(time) = keys.duration("write_timeout", Duration::from_nanos(1))? {
            settings.write_timeout = time;
        }
        if let Some(time) = keys.duration("smockron_max_ahead", Duration::ZERO)? {
            settings.smockron_max_ahead = time;
        }
        settings.check().map_err(|error| {
            let key = error.field().and_then(|field| field.strip_prefix("daemon.")).unwrap_or("");
            error.clone().at_line(keys.table.get(key).and_then(|entry| entry.node.line))
        })?;
        Ok((settings, warning))
    }

    /// Checks values that depend on each other. Called after flags have replaced values.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(http) = self.http
            && !http.ip().is_loopback()
            && self.token.is_none()
        {
            let message = format!(
                "must be a loopback address as long as there is no token, got {http}; set \
                 daemon.token = {{ file = \"path\" }}"
            );
            return Err(Error::config("daemon.http", message));
        }
        if let Some(smockron) = self.smockron
            && smockron.port() == u16::MAX
        {
            let message = "must have a port below 65535, because control uses the next port";
            return Err(Error::config("daemon.smockron", message));
        }
        if self.smockron.is_some() && !cfg!(feature = "smockron") {
            let message =
                "needs the cargo feature `smockron`, and this dthrottled was built without it";
            return Err(Error::config("daemon.smockron", message));
        }
        Ok(())
    }

    /// The default listener for lines is a Unix socket, because it has an owner and a mode. Every
    /// user of the machine can connect to a TCP port.
    pub(crate) fn default_listen() -> io::Result<Vec<ListenAddress>> {
        let path = default_socket().ok_or_else(|| {
            let message = "`daemon.listen` is missing, and there is no default because \
                           XDG_RUNTIME_DIR is not set; set listen = \"/path/of/a.sock\", or use --listen";
            io::Error::other(message)
        })?;
        Ok(vec![ListenAddress::Path(path)])
    }

    /// Compares in constant time, so that the duration does not reveal a part of the token.
    pub(crate) fn is_token(&self, given: &[u8]) -> bool {
        let Some(token) = self.token.as_deref().map(str::as_bytes) else { return false };
        let differences = token.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
        token.len() == given.len() && differences == 0
    }
}

/// `/run/dthrottled/dthrottled.sock` for root, `$XDG_RUNTIME_DIR/dthrottled.sock` for others, which
/// are also the defaults of clients. The socket is not in systemd's `RUNTIME_DIRECTORY`, because
/// other users cannot enter that directory.
fn default_socket() -> Option<PathBuf> {
    let dir: PathBuf = match rustix::process::geteuid().is_root() {
        true => "/run/dthrottled".into(),
        false => env::var_os("XDG_RUNTIME_DIR")?.into(),
    };
    Some(dir.join("dthrottled.sock"))
}

impl ListenAddress {
    /// Parses a path, which contains a slash, or an address with a port.
    pub(crate) fn parse(text: &str) -> Result<ListenAddress, String> {
        if text.contains('/') {
            return Ok(ListenAddress::Path(text.into()));
        }
        text.parse().map(ListenAddress::Address).map_err(|_| {
            format!(
                r#"must be a path such as "/run/dthrottled/dthrottled.sock", or an address with a port such as "127.0.0.1:7373", got {text:?}"#
            )
        })
    }
}

/// The table `[daemon]` and its reader.
struct Keys<'a> {
    reader: Reader,
    table: ConfigTable<'a>,
}

impl Keys<'_> {
    /// `Some(None)` is the value `false`, `None` a missing key.
    fn address(&self, key: &'static str) -> Result<Option<Option<SocketAddr>>> {
        let Some(entry) = self.table.get(key) else { return Ok(None) };
        match &entry.node.value {
            Value::Bool(false) => Ok(Some(None)),
            Value::Text(text) => parse_address(text)
                .map(|address| Some(Some(address)))
                .map_err(|message| config_error(key, entry.node.line, message)),
            _ => Err(self.reader.wrong(entry, "daemon", "an address with a port, or false")),
        }
    }

    fn number(
        &self,
        key: &'static str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>> {
        let Some(entry) = self.table.get(key) else { return Ok(None) };
        match entry.node.value {
            Value::Number(number)
                if number.fract() == 0.0 && range.contains(&(number as u64)) && number >= 0.0 =>
            {
                Ok(Some(number as u64))
            }
            _ => {
                let fix = format!("a whole number from {} to {}", range.start(), range.end());
                Err(self.reader.wrong(entry, "daemon", &fix))
            }
        }
    }

    fn duration(&self, key: &'static str, least: Duration) -> Result<Option<Duration>> {
        let Some(entry) = self.table.get(key) else { return Ok(None) };
        let Value::Text(text) = &entry.node.value else {
            return Err(self.reader.wrong(entry, "daemon", r#"a duration such as "10s""#));
        };
        let wrong = |reason: &str| {
            let message = format!("must be a duration such as \"10s\", got {text:?}: {reason}");
            config_error(key, entry.node.line, message)
        };
        let time = parse_duration(text).map_err(wrong)?;
        if time < least { Err(wrong("it is not above zero")) } else { Ok(Some(time)) }
    }

    /// The token, given as text or by a file, and a warning if every user can read that file.
    fn token(&self) -> Result<(Option<String>, Option<String>)> {
        let Some(entry) = self.table.get("token") else { return Ok((None, None)) };
        let line = entry.node.line;
        let (token, warning) = match &entry.node.value {
            Value::Text(text) => (text.clone(), None),
            Value::Table(_) => {
                let table = self.reader.table(&entry.node, "daemon.token", &[&["file"]])?;
                let Some(file) = table.get("file") else {
                    return Err(config_error(
                        "token",
                        line,
                        "must have the path of the file, as in { file = \"path\" }".into(),
                    ));
                };
                let path = self.reader.text(file, "daemon.token")?;
                read_token(Path::new(path))
                    .map_err(|message| config_error("token", line, message))?
            }
            _ => return Err(self.reader.wrong(entry, "daemon", r#"text, or { file = "path" }"#)),
        };
        let token = check_token(token).map_err(|message| config_error("token", line, message))?;
        Ok((Some(token), warning))
    }
}

/// Reads the file of a token and removes newlines at its end. Also returns a warning if every user
/// can read the file.
fn read_token(path: &Path) -> Result<(String, Option<String>), String> {
    let (bytes, warning) = read_secret(path, "daemon.token", MAX_TOKEN_LEN)
        .map_err(|error| format!("must name a file that can be read: {error}"))?;
    if bytes.len() > MAX_TOKEN_LEN {
        let path = path.display();
        return Err(format!("must have at most {MAX_TOKEN_LEN} bytes, and {path} has more"));
    }
    // `check_token` refuses what is not ASCII.
    let text = String::from_utf8_lossy(&bytes);
    Ok((text.trim_end_matches(['\n', '\r']).to_string(), warning))
}

fn check_token(token: String) -> Result<String, String> {
    if token.len() < MIN_TOKEN_LEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "must have at least {MIN_TOKEN_LEN} printable ASCII characters without blanks"
        ));
    }
    Ok(token)
}

pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let error = |_| {
        format!(
            r#"must be an address with a port such as "127.0.0.1:7380" or "[::1]:7380", got {text:?}"#
        )
    };
    text.parse().map_err(error)
}

fn config_error(key: &str, line: Option<u32>, message: String) -> Error {
    Error::config(format!("daemon.{key}"), message).at_line(line)
}

/// Reads a file as text.
pub(crate) fn read_file(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| Error::new(ErrorKind::File, format!("cannot read the file: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_daemon_is_read() {
        let text = r#"
            rate = "5/s"
            [daemon]
            listen = ["/tmp/x.sock", "[::1]:0"]
            socket_mode = "0600"
            http = "0.0.0.0:80"
            token = "0123456789abcdef"
            resp = "127.0.0.1:6379"
            smockron = "127.0.0.1:10004"
            smockron_max_ahead = "7s"
            max_connections = 5
            max_line = 64
            max_delay = "2m"
            write_timeout = "500ms"
            workers = 1
        "#;
        let (config, settings) = Settings::from_toml(text).unwrap();
        assert_eq!(config.table_name(), Some(TABLE));
        let listen = vec![
            ListenAddress::Path("/tmp/x.sock".into()),
            ListenAddress::Address("[::1]:0".parse().unwrap()),
        ];
        let expected = Settings {
            listen,
            socket_mode: 0o600,
            http: "0.0.0.0:80".parse().ok(),
            token: Some("0123456789abcdef".into()),
            resp: "127.0.0.1:6379".parse().ok(),
            smockron: "127.0.0.1:10004".parse().ok(),
            smockron_max_ahead: Duration::from_secs(7),
            max_connections: 5,
            max_line: 64,
            max_delay: Duration::from_secs(120),
            write_timeout: Duration::from_millis(500),
            workers: Some(1),
        };
        assert_eq!(settings, expected);
        assert_eq!(Settings::from_toml("").unwrap().1, Settings::defaults());
        assert_eq!(Settings::from_toml("[daemon]\nhttp = false").unwrap().1.http, None);
        let token = |given: &[u8]| settings.is_token(given);
        assert!(token(b"0123456789abcdef") && !token(b"0123456789abcdeg"));
        assert!(!token(b"0123456789abcde") && !token(b"0123456789abcdef0") && !token(b""));
        assert!(!Settings::defaults().is_token(b""));
    }

    #[test]
    fn an_error_names_the_line_the_field_and_what_is_valid() {
        for (text, message) in [
            ("[daemon]\nlisten = 5", "line 2: `daemon.listen` must be a path, "),
            ("[daemon]\nlisten = []", "line 2: `daemon.listen` must be a path, "),
            (
                "[daemon]\nlisten = [\n'/x',\n'x:y']",
                "line 4: `daemon.listen` must be a path such as ",
            ),
            (
                "[daemon]\nlistne = '/x'",
                "line 2: `daemon.listne` is an unknown key; did you mean `listen`?",
            ),
            ("daemon = 5", "line 1: `daemon` must be a table of listen, "),
            (
                "[daemon]\nsocket_mode = '0999'",
                "line 2: `daemon.socket_mode` must be an octal mode",
            ),
            ("[daemon]\nhttp = 'localhost:80'", "line 2: `daemon.http` must be an address"),
            ("[daemon]\nhttp = true", "line 2: `daemon.http` must be an address"),
            ("[daemon]\n\nhttp = '0.0.0.0:80'", "line 3: `daemon.http` must be a loopback address"),
            ("[daemon]\ntoken = 'short'", "line 2: `daemon.token` must have at least 16"),
            (
                "[daemon]\ntoken = { file = '/nowhere/x' }",
                "line 2: `daemon.token` must name a file that can be read: cannot read /nowhere/x: ",
            ),
            (
                "[daemon]\nmax_line = 1.5",
                "line 2: `daemon.max_line` must be a whole number from 64 to ",
            ),
            (
                "[daemon]\nmax_connections = -1",
                "line 2: `daemon.max_connections` must be a whole number from 1",
            ),
            (
                "[daemon]\nworkers = 0",
                "line 2: `daemon.workers` must be a whole number from 1 to 256, got 0",
            ),
            (
                "[daemon]\nwrite_timeout = '5'",
                "line 2: `daemon.write_timeout` must be a duration such as \"10s\", got \"5\": its unit",
            ),
            (
                "[daemon]\nwrite_timeout = '0s'",
                "line 2: `daemon.write_timeout` must be a duration such as \"10s\", got \"0s\": it is",
            ),
            (
                "[daemon]\nwrite_timeout = 5",
                "line 2: `daemon.write_timeout` must be a duration such as \"10s\", got 5",
            ),
            (
                "[daemon]\nsmockron_max_ahead = 'soon'",
                "line 2: `daemon.smockron_max_ahead` must be a duration such as \"10s\", got \"soon\": ",
            ),
            (
                "[daemon]\nmax_delay = '5 lightyears'",
                "line 2: `daemon.max_delay` must be a duration such as \"10s\", got \"5 lightyears\": ",
            ),
            ("rate = 0\n[daemon]", "line 1: `rate` must be a rate such as "),
        ] {
            let error = Settings::from_toml(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
