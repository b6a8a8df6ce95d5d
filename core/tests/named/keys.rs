//! A table belongs to the cluster whose key it has. Another one's is refused where the name was
//! chosen, and left alone where it was not.

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
fn a_chosen_name_with_another_key_is_an_error_that_says_what_to_do() {
    let folder = Folder::new();
    open(web(&folder), 10).unwrap();
    let error = in_cluster(web(&folder), ONE).unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Config, Some("table")));
    let command = format!("`dthrottle table remove web --dir {}`", folder.path());
    for part in ["\"web\"", "another fingerprint key", "give another name", &command] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    dthrottle::tables::remove("web", None, Some(folder.path())).unwrap();
    assert_eq!(in_cluster(web(&folder), ONE).unwrap().table_name(), Some("web"));
    assert!(in_cluster(web(&folder), TWO).is_err());
}

#[test]
fn under_a_name_that_nobody_chose_every_key_has_a_table() {
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
    // What comes later finds the table that is in use, whatever became of others.
    std::fs::remove_file(file(&folder, "web")).unwrap();
    assert_eq!(balance(&in_cluster(default_named(), TWO).unwrap(), "tag"), 7);
    assert_eq!(folder.files().len(), 2);
}

#[test]
fn who_starts_at_the_same_moment_meets() {
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
fn a_cluster_that_comes_first_has_the_name_itself() {
    let folder = Folder::new();
    let one = in_cluster(web(&folder).default_name(true), ONE).unwrap();
    take(&one, "tag", 4);
    // Without a cluster any key will do.
    for again in [
        in_cluster(web(&folder).default_name(true), ONE),
        open(web(&folder).default_name(true), 10),
    ] {
        assert_eq!(balance(&again.unwrap(), "tag"), 6);
    }
    assert_eq!(folder.files().len(), 1);
}

#[test]
fn what_is_shared_by_no_name_has_none() {
    let missing = TableConfig::named("web").dir("/nowhere/at/all").tags(1);
    for table in [TableConfig::private(), TableConfig::anonymous(), missing] {
        assert_eq!(open(table, 10).unwrap().table_name(), None);
    }
}

#[test]
fn a_usual_name_leaves_room_for_a_number() {
    let folder = Folder::new();
    let long = |length| TableConfig::named("x".repeat(length)).dir(folder.path()).tags(1);
    assert!(open(long(100), 10).is_ok());
    let error = open(long(98).default_name(true), 10).unwrap_err();
    assert_eq!(error.field(), Some("table.name"));
    assert!(open(long(97).default_name(true), 10).is_ok());
}
