//! A table belongs to the cluster whose key it has. If the table's name was chosen, another key is
//! an error. If the name is a default, the next numbered name is used.

use dthrottle::{ClusterConfig, ErrorKind, Result, TableConfig, Throttle};

use crate::folder::Folder;
use crate::{balance, file, open, slow, take, web};

fn in_cluster(table: TableConfig, secret: &str) -> Result<Throttle> {
    let cluster = ClusterConfig::new("web").secret(secret).listen("127.0.0.1:0");
    Throttle::builder().table(table).cluster(cluster).rule(slow(10)).build()
}

const ONE: &str = "the first secret of all";
const TWO: &str = "the second secret of all";

#[test]
fn a_chosen_name_with_another_key_is_an_error() {
    let folder = Folder::new();
    open(web(&folder), 10).unwrap();
    let error = in_cluster(web(&folder), ONE).unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Config, Some("table")));
    let command = format!("`dthrottle table remove web --dir {}`", folder.path());
    for part in ["\"web\"", "another fingerprint key", "use another name", &command] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    dthrottle::tables::remove("web", None, Some(folder.path())).unwrap();
    assert_eq!(in_cluster(web(&folder), ONE).unwrap().table_name(), Some("web"));
    assert!(in_cluster(web(&folder), TWO).is_err());
}

#[test]
fn every_key_gets_its_own_table_under_a_default_name() {
    let folder = Folder::new();
    let default_named = || web(&folder).default_name(true);
    let alone = open(default_named(), 10).unwrap();
    take(&alone, "tag", 1);
    let one = in_cluster(default_named(), ONE).unwrap();
    take(&one, "tag", 2);
    let two = in_cluster(default_named(), TWO).unwrap();
    take(&two, "tag", 3);
    let all = [
        (open(default_named(), 10), "web", 9),
        (in_cluster(default_named(), ONE), "web-2", 8),
        (in_cluster(default_named(), TWO), "web-3", 7),
    ];
    for (again, name, left) in all {
        let again = again.unwrap();
        assert_eq!((again.table_name(), balance(&again, "tag")), (Some(name), left));
        assert_eq!(again.warnings(), [""; 0]);
    }
    // Later processes find the table that exists with their key, even if a lower number is free.
    std::fs::remove_file(file(&folder, "web")).unwrap();
    assert_eq!(balance(&in_cluster(default_named(), TWO).unwrap(), "tag"), 7);
    assert_eq!(folder.files().len(), 2);
}

#[test]
fn processes_that_start_at_the_same_moment_share_a_table() {
    for _ in 0..10 {
        let folder = Folder::new();
        open(web(&folder), 10).unwrap();
        let name = |secret| {
            let throttle = in_cluster(web(&folder).default_name(true), secret).unwrap();
            throttle.table_name().unwrap().to_string()
        };
        let secrets = [ONE, TWO, ONE, TWO, ONE, TWO];
        let names = std::thread::scope(|scope| {
            let starts = secrets.map(|secret| scope.spawn(move || name(secret)));
            starts.map(|start| start.join().unwrap())
        });
        let [one, two, rest @ ..] = &names;
        assert_ne!(one, two);
        assert_eq!(rest.as_chunks().0, [[one.clone(), two.clone()], [one.clone(), two.clone()]]);
        assert_eq!(folder.files().len(), 3);
    }
}

#[test]
fn the_first_cluster_gets_the_name_without_a_number() {
    let folder = Folder::new();
    let one = in_cluster(web(&folder).default_name(true), ONE).unwrap();
    take(&one, "tag", 4);
    // Without a cluster, any key is accepted.
    for again in [
        in_cluster(web(&folder).default_name(true), ONE),
        open(web(&folder).default_name(true), 10),
    ] {
        assert_eq!(balance(&again.unwrap(), "tag"), 6);
    }
    assert_eq!(folder.files().len(), 1);
}

#[test]
fn an_unnamed_table_has_no_name() {
    let missing = TableConfig::named("web").dir("/nowhere/at/all").tags(1);
    for table in [TableConfig::private(), TableConfig::anonymous(), missing] {
        assert_eq!(open(table, 10).unwrap().table_name(), None);
    }
}

#[test]
fn a_default_name_leaves_room_for_a_number() {
    let folder = Folder::new();
    let long = |length| TableConfig::named("x".repeat(length)).dir(folder.path()).tags(1);
    assert!(open(long(100), 10).is_ok());
    let error = open(long(98).default_name(true), 10).unwrap_err();
    assert_eq!(error.field(), Some("table.name"));
    assert!(open(long(97).default_name(true), 10).is_ok());
}
