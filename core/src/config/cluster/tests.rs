//! Tests of what the vectors do not cover: the values that were read, hidden secrets, defaults.

use std::net::SocketAddr;
use std::time::Duration;

use super::{ClusterConfig, Reports};
use crate::config::{Config, Entry, Names, Value};
use crate::error::{Error, ErrorKind};
use crate::table::MIN_SHARED_LINES;
use crate::{ManualClock, Rule, TableConfig, Throttle};

const SECRET: &str = "hunter2hunter2hunter2";

fn read(toml: &str) -> ClusterConfig {
    let toml = format!("[cluster]\nname = \"web\"\n{toml}");
    Config::from_toml(&toml).unwrap_or_else(|error| panic!("{toml}: {error}")).cluster.unwrap()
}

fn fails(cluster: ClusterConfig) -> Error {
    let builder = Throttle::builder().clock(ManualClock::new()).cluster(cluster);
    builder.rule(Rule::per_second(1)).build().expect_err("a bad cluster")
}

fn web() -> ClusterConfig {
    ClusterConfig::new("web")
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn a_cluster_with_only_a_name_uses_the_defaults() {
    let cluster = read("");
    assert_eq!(cluster, web());
    assert_eq!(cluster.listen_address(), address("127.0.0.1:7373"));
    assert_eq!((cluster.secret_bytes(), cluster.ttl()), (None, 1));
    assert!(cluster.is_loopback_only() && cluster.packet_key_bytes().next().is_none());
    assert_eq!(cluster.period, Duration::from_millis(100));
    assert_eq!((cluster.tolerance, cluster.pacing), (None, false));
    assert_eq!(cluster.retention, Duration::from_secs(15));
    assert_eq!(cluster.retention_bytes, 16_000_000);
}

#[test]
fn every_key_of_a_cluster_is_read() {
    let cluster = read(
        r#"secret = "0123456789abcdef"
           packet_keys = ["first key: 16 bytes", "second key: 16 bytes"]
           listen = "[::]:0"
           advertise = "203.0.113.7:99"
           peers = ["10.0.0.1", "node.example.com:80", "[fd00::1]"]
           period = "10ms"
           reports = "periodic"
           tolerance = "0s"
           pacing = true
           busy = true
           retention = "10 minutes"
           retention_bytes = "64 KB""#,
    );
    let built = web()
        .secret("0123456789abcdef")
        .packet_keys(["first key: 16 bytes", "second key: 16 bytes"])
        .listen("[::]:0")
        .advertise("203.0.113.7:99")
        .peer("10.0.0.1")
        .peer("node.example.com:80")
        .peer("[fd00::1]")
        .period(Duration::from_millis(10))
        .reports(Reports::Periodic)
        .tolerance(Duration::ZERO)
        .pacing(true)
        .busy(true)
        .retention(Duration::from_secs(600))
        .retention_bytes(64_000);
    assert_eq!(cluster, built);
    let peers: Vec<_> = cluster.peers.iter().map(|peer| (peer.host.as_str(), peer.port)).collect();
    assert_eq!(peers, [("10.0.0.1", 7373), ("node.example.com", 80), ("fd00::1", 7373)]);
    assert_eq!(cluster.secret_bytes(), Some(&b"0123456789abcdef"[..]));
    assert_eq!(cluster.packet_key_bytes().next(), Some(&b"first key: 16 bytes"[..]));
    assert_eq!(cluster.listen_address(), address("[::]:0"));
    assert_eq!(cluster.advertise, Some(address("203.0.113.7:99")));
    assert_eq!(cluster.tolerance, Some(Duration::ZERO));
    assert_eq!(read("tolerance = \"auto\"").tolerance, None);
    assert_eq!(read("period = \"0.25 s\"").period, Duration::from_millis(250));
    assert_eq!(read("retention_bytes = 70000").retention_bytes, 70_000);
}

#[test]
fn keys_of_multicast_are_read() {
    let cluster = read(
        r#"without_secret = true
           listen = "0.0.0.0:7373"
           multicast = "239.1.2.3:80"
           interface = "eth0"
           multicast_ttl = 0"#,
    );
    assert_eq!(cluster.multicast, Some(address("239.1.2.3:80")));
    assert_eq!((cluster.interface.as_deref(), cluster.ttl()), (Some("eth0"), 0));
    assert!(!cluster.is_loopback_only());
    let six = "secret = \"0123456789abcdef\"\nlisten = \"[::]:0\"\nmulticast = \"[ff02::73]:1\"\n";
    assert_eq!(read(six).multicast, Some(address("[ff02::73]:1")));
}

#[test]
fn a_cluster_with_a_secret_listens_on_all_addresses() {
    let cluster = read(&format!("secret = {SECRET:?}"));
    assert_eq!(cluster.listen_address(), address("0.0.0.0:7373"));
    assert!(!cluster.is_loopback_only());
    let cluster = read("secret = { file = \"nowhere\" }");
    assert_eq!(cluster.listen_address(), address("0.0.0.0:7373"));
    assert_eq!(cluster.secret_bytes(), None, "the file was not read yet");
    // `without_secret` allows other addresses, but does not change the default.
    let cluster = read("without_secret = true");
    assert_eq!(cluster.listen_address(), address("127.0.0.1:7373"));
}

/// Checks errors about secrets, errors about other keys, and `Debug`.
#[test]
fn errors_and_debug_output_do_not_show_secrets() {
    let short = &SECRET[..15];
    for toml in [
        format!("secret = {short:?}"),
        format!("secret = [{SECRET:?}]"),
        format!("secret = {{ text = {SECRET:?} }}"),
        "secret = 2222222222".into(),
        format!("secret = {SECRET}"),
        format!("secret = \"{SECRET}"),
        format!("secret = {SECRET:?} {SECRET:?}"),
        format!("secret = {SECRET:?}\nsecret = {SECRET:?}"),
        format!("secret = {SECRET:?}\nwithout_secret = true"),
        format!("secret = {SECRET:?}\npacket_keys = {SECRET:?}"),
        format!("secret = {SECRET:?}\npacket_keys = [{short:?}]"),
        format!("secret = {SECRET:?}\npacket_keys = [{SECRET:?}, {SECRET:?}]"),
        format!("secret = {SECRET:?}\npacket_keys = [2222222222]"),
        format!("packet_keys = [{SECRET:?}]"),
        format!("secrets = {SECRET:?}"),
    ] {
        let error = Config::from_toml(&format!("[cluster]\nname = \"web\"\n{toml}\n")).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("hunter2") && !text.contains("2222"), "{toml}: {text}");
    }
    let cluster = web().secret(SECRET).packet_keys([SECRET]);
    let mut config = Config::default();
    config.set_cluster(cluster);
    let text =
        format!("{config:?} {:?}", Throttle::builder().cluster(config.cluster.clone().unwrap()));
    // 104 is the byte `h`, as `Debug` of a byte slice would show it.
    assert!(
        text.contains("hidden") && !text.contains("hunter2") && !text.contains("104"),
        "{text}"
    );
}

#[test]
fn errors_spell_keys_as_the_configuration_does() {
    let table = |key: &str, value: Value| {
        let name = Entry::new("name", Value::Text("web".into()));
        let cluster = Value::Table(vec![name, Entry::new(key, value)]);
        Value::Table(vec![Entry::new("cluster", cluster)])
    };
    let keys = Value::List(vec![Value::Text(SECRET.into()).into()]);
    let error = Config::from_value(&table("packetKeys", keys).into(), Names::Camel).unwrap_err();
    assert_eq!(error.field(), Some("cluster.packetKeys"));
    let listen = Value::Text("0.0.0.0:1".into());
    let error = Config::from_value(&table("listen", listen).into(), Names::Camel).unwrap_err();
    assert!(error.to_string().contains("withoutSecret = true"), "{error}");
}

#[test]
fn building_a_throttle_checks_the_cluster() {
    for (cluster, field) in [
        (ClusterConfig::new(""), "cluster.name"),
        (web().secret("short"), "cluster.secret"),
        (web().secret("x".repeat(4097)), "cluster.secret"),
        (web().secret_file(""), "cluster.secret"),
        (web().secret(SECRET).packet_keys([""; 0]), "cluster.packet_keys"),
        (web().listen("here"), "cluster.listen"),
        (web().listen("0.0.0.0:1"), "cluster.listen"),
        (web().advertise("10.0.0.1:1"), "cluster.advertise"),
        (web().peer("localhost").peer("10.0.0.1"), "cluster.peers[1]"),
        (web().peer("localhost").peer("a b").peer(""), "cluster.peers[1]"),
        (web().interface("eth0"), "cluster.interface"),
        (web().multicast_ttl(1), "cluster.multicast_ttl"),
        (web().period(Duration::ZERO), "cluster.period"),
        (web().tolerance(Duration::from_secs(61)), "cluster.tolerance"),
        (web().retention(Duration::from_millis(999)), "cluster.retention"),
        (web().retention_bytes(63_999), "cluster.retention_bytes"),
    ] {
        let error = fails(cluster);
        assert_eq!((error.kind(), error.field()), (ErrorKind::Config, Some(field)), "{error}");
    }
    let many = (0..1001).fold(web(), |cluster, _| cluster.peer("localhost"));
    assert_eq!(fails(many).field(), Some("cluster.peers"));
}

/// A smaller table does not store enough bits of the fingerprints to report them.
#[test]
fn a_small_table_of_a_cluster_has_the_minimum_size_of_a_shared_table() {
    let small = TableConfig::private().tags(1);
    let lines = |builder: crate::Builder| {
        let builder = builder.rule(Rule::per_second(1)).clock(ManualClock::new());
        crate::internals::table_size(&builder.build().unwrap()).1 / 4
    };
    assert!(lines(Throttle::builder().table(small.clone())) < 100);
    let first = Throttle::builder().cluster(web()).table(small.clone());
    assert_eq!(lines(first), MIN_SHARED_LINES);
    let last = Throttle::builder().table(small).cluster(web());
    assert_eq!(lines(last), MIN_SHARED_LINES);
    let config = "table = { private = true, size = 1 }\ncluster = { name = \"web\" }\n";
    assert_eq!(lines(Config::from_toml(config).unwrap().into()), MIN_SHARED_LINES);
}

/// These examples name peers and files that the tests of the documentation do not have.
#[test]
fn cluster_examples_of_the_documentation_are_valid() {
    let page = include_str!("../../../../docs/configuration.md");
    let blocks: Vec<&str> = page.split("```toml cluster\n").skip(1).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let toml = block.split("```").next().unwrap();
        let config = Config::from_toml(toml).unwrap_or_else(|error| panic!("{toml}: {error}"));
        assert!(config.cluster.is_some());
    }
}

mod files {
    use super::*;

    /// A temporary file, which is removed when the value is dropped.
    struct File(std::path::PathBuf);

    impl File {
        fn new(name: &str, text: &[u8]) -> File {
            let name = format!("dthrottle-test-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, text).unwrap();
            File(path)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            std::fs::remove_file(&self.0).unwrap();
        }
    }

    fn loaded(name: &str, text: &[u8]) -> Result<Vec<u8>, Error> {
        let file = File::new(name, text);
        let mut cluster = web().secret_file(&file.0);
        cluster.load()?;
        Ok(cluster.secret_bytes().unwrap().to_vec())
    }

    #[test]
    fn load_removes_one_newline_at_the_end_of_the_file() {
        let secret = SECRET.as_bytes();
        for (i, end) in ["", "\n", "\r\n"].into_iter().enumerate() {
            let text = [secret, end.as_bytes()].concat();
            assert_eq!(loaded(&format!("end{i}"), &text).unwrap(), secret, "{end:?}");
        }
        assert_eq!(loaded("two", b"0123456789abcdef\n\n").unwrap(), b"0123456789abcdef\n");
        assert_eq!(loaded("bytes", &[0xff; 16]).unwrap(), [0xff; 16]);
    }

    #[test]
    fn load_fails_if_the_secret_is_too_short_or_too_long() {
        for (name, length) in [("empty", 0), ("short", 15), ("long", 4097), ("huge", 100_000)] {
            let text = [&vec![b'h'; length][..], b"\n"].concat();
            let error = loaded(name, &text).unwrap_err();
            assert_eq!((error.kind(), error.field()), (ErrorKind::Config, Some("cluster.secret")));
            assert!(!error.to_string().contains("hhh"), "{error}");
        }
        assert_eq!(loaded("longest", &[b'h'; 4096]).unwrap().len(), 4096);
    }

    #[test]
    fn building_a_throttle_reads_the_secret_file() {
        let file = File::new("built", b"0123456789abcdef");
        let clock = ManualClock::new();
        let build = |path: &std::path::Path| {
            let cluster = web().secret_file(path).listen("127.0.0.1:0");
            let builder = Throttle::builder().clock(clock.clone()).cluster(cluster);
            builder.rule(Rule::per_second(1)).build()
        };
        build(&file.0).unwrap();
        std::fs::write(&file.0, "short").unwrap();
        assert_eq!(build(&file.0).unwrap_err().kind(), ErrorKind::Config);
        let error = build("/nowhere/at/all".as_ref()).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::File, Some("cluster.secret")));
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    }
}
