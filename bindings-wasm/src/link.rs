//! The engine of a throttle in a cluster. The host carries its datagrams, because there are no
//! sockets. `js/link.js` wraps it in a class.

use std::net::SocketAddr;
use std::time::Duration;

use dthrottle::internals;
use dthrottle::internals::access::Exchange;
use dthrottle::internals::cluster::{Engine, Output, PeerAddr, To, Transmit};
use dthrottle::{Error, ErrorKind, Throttle, convert};
use wasm_bindgen::prelude::*;

use crate::common;
use crate::failure::{Result, failure};
use crate::open::{Handle, random_key};

/// The maximum number of characters of a wrong address in a message.
const MAX_SHOWN: usize = 60;

/// The engine of a throttle's table. It stops working when the throttle gets a newer one.
#[wasm_bindgen]
pub struct Link {
    engine: Engine,
    exchange: Exchange,
    throttle: Throttle,
    incarnation: u64,
    /// The number of the last event that `poll` returned.
    last_event: u64,
}

/// Makes the link of a throttle to its cluster. The default seed is random, the default incarnation
/// the time.
#[wasm_bindgen(js_name = newLink)]
pub fn new_link(
    handle: &Handle,
    address: &str,
    seed: Option<u64>,
    incarnation: Option<u64>,
) -> Result<Link> {
    let throttle = handle.throttle.clone();
    // Starts nothing in WebAssembly, but returns an error if the throttle is closed.
    throttle.start().map_err(failure)?;
    let address = parse("address", address)?;
    let exchange = internals::exchange(&throttle);
    let (earlier, _) = exchange.exchanger();
    let [random, bits] = random_key()?;
    let default_incarnation = || (js_sys::Date::now() as u64) << 20 | bits & 0xf_ffff;
    let incarnation =
        incarnation.unwrap_or_else(|| default_incarnation().max(earlier.saturating_add(1)));
    if incarnation <= earlier {
        let message = format!(
            "`incarnation` must be greater than that of the earlier link, {earlier}, got {incarnation}"
        );
        return Err(argument(message));
    }
    let Some(mut engine) = internals::engine(&throttle, seed.unwrap_or(random), incarnation) else {
        return Err(without_cluster());
    };
    engine.set_address(address);
    exchange.set_exchanger(incarnation, 0);
    let last_event = throttle.events(0).last().map_or(0, |event| event.number);
    Ok(Link { engine, exchange, throttle, incarnation, last_event })
}

/// Handles a datagram.
#[wasm_bindgen(js_name = receiveLink)]
pub fn receive_link(link: &mut Link, from: &str, mut datagram: Vec<u8>) -> Result<()> {
    let from = parse("from", from)?;
    link.run(|engine, now| engine.handle_datagram(now, from, &mut datagram));
    Ok(())
}

/// Handles the end of the timeout.
#[wasm_bindgen(js_name = timeoutLink)]
pub fn timeout_link(link: &mut Link) {
    link.run(Engine::handle_timeout);
}

/// Adds addresses at which there may be peers.
#[wasm_bindgen(js_name = joinLink)]
pub fn join_link(link: &mut Link, addresses: Vec<String>) -> Result<()> {
    let addresses = addresses.iter().map(|address| parse("addresses", address));
    let addresses: Vec<PeerAddr> = addresses.collect::<Result<_>>()?;
    link.run(|engine, now| engine.join(now, &addresses));
    Ok(())
}

/// Leaves the cluster.
#[wasm_bindgen(js_name = leaveLink)]
pub fn leave_link(link: &mut Link) {
    link.run(Engine::leave);
}

/// Returns the next output: a list of a datagram and its addresses, or `group`; an event as JSON;
/// or the number of milliseconds until the next timeout.
#[wasm_bindgen(js_name = pollLink)]
pub fn poll_link(link: &mut Link) -> JsValue {
    if !link.is_newest() {
        return f64::INFINITY.into();
    }
    loop {
        match link.engine.poll() {
            Output::Transmit(transmit) => return to_list(transmit),
            // The table has the event with its number, unless it was removed already.
            Output::Event(_) => {
                if let Some(event) = link.throttle.events(link.last_event).first() {
                    link.last_event = event.number;
                    return common::json(event).into();
                }
            }
            Output::Timeout(u64::MAX) => return f64::INFINITY.into(),
            Output::Timeout(at) => {
                let ns = at.saturating_sub(link.exchange.now());
                // Rounds up to microseconds. A shorter time would be lost in the precision of a
                // host that adds it to milliseconds since 1970.
                let wait = Duration::from_micros(ns.div_ceil(1000));
                return convert::millis(wait).into();
            }
        }
    }
}

impl Link {
    /// Whether the throttle has no newer link. Each of two links would report only a part of the
    /// hits.
    fn is_newest(&self) -> bool {
        self.exchange.exchanger().0 == self.incarnation
    }

    fn run(&mut self, call: impl FnOnce(&mut Engine, u64)) {
        if self.is_newest() {
            let now = self.exchange.now();
            call(&mut self.engine, now);
        }
    }
}

fn to_list(Transmit { to, bytes }: Transmit) -> JsValue {
    let list = js_sys::Array::of1(&js_sys::Uint8Array::from(bytes.as_slice()));
    match to {
        To::One(address) => push(&list, address),
        To::Each(addresses) => addresses.iter().for_each(|address| push(&list, *address)),
        To::Group => drop(list.push(&"group".into())),
    }
    list.into()
}

fn push(list: &js_sys::Array, address: PeerAddr) {
    // All addresses came from the host as IP addresses.
    if let Some(address) = address.socket_addr() {
        list.push(&address.to_string().into());
    }
}

/// Parses the address of a node. An IPv4 address in IPv6 notation becomes an IPv4 address.
fn parse(name: &str, text: &str) -> Result<PeerAddr> {
    let address = text.parse::<SocketAddr>();
    let address =
        address.map(|address| SocketAddr::new(address.ip().to_canonical(), address.port()));
    match address {
        Ok(address) if address.port() != 0 && !address.ip().is_unspecified() => Ok(address.into()),
        _ => {
            let shown: String = text.chars().take(MAX_SHOWN).collect();
            Err(argument(format!(
                "`{name}` must be the IP address and port of a node, such as 10.0.0.1:7373 or \
                 [fd00::1]:7373, got {shown:?}"
            )))
        }
    }
}

pub(crate) fn without_cluster() -> JsValue {
    argument("the throttle has no cluster; give it the option cluster".into())
}

fn argument(message: String) -> JsValue {
    failure(Error::new(ErrorKind::Argument, message))
}
