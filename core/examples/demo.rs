//! Three clients and one rule, live: who asks for more than the rule gets the rule.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this runs in real time")]

use std::error::Error;
use std::io::{IsTerminal, Write, stdout};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dthrottle::{Rule, Throttle};

const RATE: u64 = 10;
const BURST: u64 = 20;
const SECONDS: u32 = 5;
const FRAME: Duration = Duration::from_millis(250);

struct Client {
    name: &'static str,
    habit: &'static str,
    /// Requests in the frame of this number.
    requests: fn(u32) -> u64,
    asked: u64,
    admitted: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let throttle = Throttle::builder().rule(Rule::per_second(RATE).burst(BURST)).build()?;
    let mut clients = [
        client("polite", "8 a second", |_| 2),
        client("bursty", "20 at once, then rests", |frame| if frame % 9 == 0 { 20 } else { 0 }),
        client("greedy", "100 a second", |_| 25),
    ];
    println!("One rule for each client: {RATE} a second, burst {BURST}. {SECONDS} seconds.\n");
    let live = stdout().is_terminal();
    let start = Instant::now();
    let frames = SECONDS * 4;
    for frame in 0..frames {
        for client in &mut clients {
            for _ in 0..(client.requests)(frame) {
                client.asked += 1;
                client.admitted += u64::from(throttle.check(client.name)?.allowed);
            }
        }
        if live || frame + 1 == frames {
            show(&clients, &throttle)?;
            if live && frame + 1 < frames {
                print!("\x1b[{}A", clients.len() + 1);
                stdout().flush()?;
            }
        }
        sleep((FRAME * (frame + 1)).saturating_sub(start.elapsed()));
    }
    println!(
        "\nIn {SECONDS} seconds the rule gives at most {BURST} + {RATE} x {SECONDS} = {}, however \
         often a client asks.\nWho asks for less is never refused.\n",
        BURST + RATE * u64::from(SECONDS)
    );
    Ok(())
}

fn client(name: &'static str, habit: &'static str, requests: fn(u32) -> u64) -> Client {
    Client { name, habit, requests, asked: 0, admitted: 0 }
}

fn show(clients: &[Client], throttle: &Throttle) -> Result<(), Box<dyn Error>> {
    println!(
        "{:<8} {:<24} {:>6} {:>9} {:>8}  bucket",
        "client", "asks", "asked", "admitted", "refused"
    );
    for client in clients {
        let left = throttle.peek(client.name)?.remaining as usize;
        let bar = "#".repeat(left) + &".".repeat(BURST as usize - left);
        println!(
            "{:<8} {:<24} {:>6} {:>9} {:>8}  {bar}",
            client.name,
            client.habit,
            client.asked,
            client.admitted,
            client.asked - client.admitted
        );
    }
    Ok(())
}
