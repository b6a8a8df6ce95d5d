//! A named table outlives its processes. HTTP middleware logs once when a refusal is caused by a
//! bucket that was filled before the table was opened.

use std::thread;
use std::time::Duration;

use dthrottle::web::{Action, AdapterSettings, Middleware, Request};

use crate::folder::Folder;

const CODE: &str = "DTHROTTLE_EARLIER_PROCESS";

fn middleware(folder: &Folder, rate: &str) -> Middleware {
    let dir = folder.path();
    let options = format!(
        "rate = {rate:?}\nburst = 2\ntable = {{ name = \"web\", dir = {dir:?}, size = 1000 }}"
    );
    Middleware::from_toml(&options, AdapterSettings::default()).unwrap()
}

/// Sends `count` requests of a client. Returns the warnings, and whether the last request was
/// refused.
fn send(middleware: &Middleware, client: &str, count: u32) -> (Vec<String>, bool) {
    let request = Request { peer: Some(client), ..Request::default() };
    let mut is_refused = false;
    for _ in 0..count {
        let decided = middleware.decide(&request).unwrap();
        is_refused = matches!(decided.action, Action::Refuse(_));
    }
    let warnings = middleware.take_warnings().into_iter();
    let of_code = warnings.filter(|warning| warning.code == CODE);
    (of_code.map(|warning| warning.message).collect(), is_refused)
}

#[test]
fn a_refusal_caused_by_an_earlier_process_is_logged_once() {
    let folder = Folder::new();
    let earlier = middleware(&folder, "1/day");
    assert_eq!(send(&earlier, "203.0.113.7", 2), (vec![], false));
    drop(earlier);

    let now = middleware(&folder, "1/day");
    assert_eq!(send(&now, "203.0.113.8", 3), (vec![], true), "a client of this process alone");
    let (warnings, is_refused) = send(&now, "203.0.113.7", 1);
    assert!(is_refused);
    let command = format!("`dthrottle table remove web --dir {}`", folder.path());
    assert!(warnings.len() == 1 && warnings[0].contains(&command), "{warnings:?}");
    assert!(warnings[0].contains("the table \"web\""), "{warnings:?}");
    assert_eq!(send(&now, "203.0.113.7", 1), (vec![], true), "a second refusal is not logged");
}

#[test]
fn a_refusal_is_not_logged_if_another_throttle_uses_the_table() {
    let folder = Folder::new();
    let worker = middleware(&folder, "1/day");
    send(&worker, "203.0.113.7", 2);
    // Middleware with the same table would share the throttle, so a plain throttle holds the table.
    let holder = dthrottle::Throttle::builder()
        .table(dthrottle::TableConfig::named("web").dir(folder.path()).tags(1000))
        .rule(crate::slow(1))
        .build()
        .unwrap();
    drop(worker);
    let next = middleware(&folder, "1/day");
    assert_eq!(send(&next, "203.0.113.7", 1), (vec![], true));
    drop((holder, next));
    // Control: if no process holds the table, the same refusal is logged.
    assert_eq!(send(&middleware(&folder, "1/day"), "203.0.113.7", 1).0.len(), 1);
}

#[test]
fn a_refusal_is_not_logged_if_this_process_emptied_the_bucket() {
    let folder = Folder::new();
    send(&middleware(&folder, "20/s"), "203.0.113.7", 2);
    let now = middleware(&folder, "20/s");
    now.open().unwrap();
    // The earlier process's two units are back after 100 ms.
    thread::sleep(Duration::from_millis(150));
    let (warnings, is_refused) = send(&now, "203.0.113.7", 200);
    assert_eq!((warnings, is_refused), (vec![], true));
}
