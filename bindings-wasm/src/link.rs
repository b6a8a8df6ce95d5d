//! The engine of a throttle in a cluster, whose datagrams the host carries: here is no socket.
//! `js/link.js` makes a class of it.

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

/// How much of a wrong address a message shows.
const SHOWN: usize = 60;

/// An engine at work on a throttle's table, until there is a newer one.
#[wasm_bindgen]
pub struct Link {
    engine: Engine,
    exchange: Exchange,
    throttle: Throttle,
    incarnation: u64,
    /// The number of the last event that was told.
    told: u64,
}

/// Links a throttle with its cluster. What is not given is random, or the time.
#[wasm_bindgen(js_name = newLink)]
pub fn new_link(
    handle: &Handle,
    address: &str,
    seed: Option<u64>,
    incarnation: Option<u64>,
) -> Result<Link> {
    let throttle = handle.throttle.clone();
    // Nothing starts here, but it is an error if the throttle is closed.
    throttle.start().map_err(failure)?;
    let address = parse("address", address)?;
    let exchange = internals::exchange(&throttle);
    let (earlier, _) = exchange.exchanger();
    let [random, bits] = random_key()?;
    let usual = || (js_sys::Date::now() as u64) << 20 | bits & 0xf_ffff;
    let incarnation = incarnation.unwrap_or_else(|| usual().max(earlier.saturating_add(1)));
    if incarnation <= earlier {
        let message =
            format!("incarnation: must be greater than that of the earlier link, {earlier}");
        return Err(argument(message));
    }
    let Some(mut engine) = internals::engine(&throttle, seed.unwrap_or(random), incarnation) else {
        return Err(without_cluster());
    };
    engine.set_address(address);
    exchange.set_exchanger(incarnation, 0);
    let told = throttle.events(0).last().map_or(0, |event| event.number);
    Ok(Link { engine, exchange, throttle, incarnation, told })
}

/// Takes a datagram.
#[wasm_bindgen(js_name = receiveLink)]
pub fn receive_link(link: &mut Link, from: &str, mut datagram: Vec<u8>) -> Result<()> {
    let from = parse("from", from)?;
    link.work(|engine, now| engine.handle_datagram(now, from, &mut datagram));
    Ok(())
}

/// Does what is due.
#[wasm_bindgen(js_name = timeoutLink)]
pub fn timeout_link(link: &mut Link) {
    link.work(Engine::handle_timeout);
}

/// Says at which addresses there may be peers.
#[wasm_bindgen(js_name = joinLink)]
pub fn join_link(link: &mut Link, addresses: Vec<String>) -> Result<()> {
    let addresses = addresses.iter().map(|address| parse("addresses", address));
    let addresses: Vec<PeerAddr> = addresses.collect::<Result<_>>()?;
    link.work(|engine, now| engine.join(now, &addresses));
    Ok(())
}

/// Says goodbye.
#[wasm_bindgen(js_name = leaveLink)]
pub fn leave_link(link: &mut Link) {
    link.work(Engine::leave);
}

/// What to do next: a list of a datagram and the addresses that it goes to, or `group`; an event as
/// JSON; or nothing for a number of milliseconds.
#[wasm_bindgen(js_name = pollLink)]
pub fn poll_link(link: &mut Link) -> JsValue {
    if !link.is_newest() {
        return f64::INFINITY.into();
    }
    loop {
        match link.engine.poll() {
            Output::Transmit(transmit) => return carried(transmit),
            // The table has it, with its number. If it was forgotten there is nothing to tell.
            Output::Event(_) => {
                if let Some(event) = link.throttle.events(link.told).first() {
                    link.told = event.number;
                    return common::json(event).into();
                }
            }
            Output::Timeout(u64::MAX) => return f64::INFINITY.into(),
            Output::Timeout(at) => {
                let ns = at.saturating_sub(link.exchange.now());
                // Whole microseconds: less would be lost where the host adds it to a time since
                // 1970, and its time would stand still.
                let wait = Duration::from_micros(ns.div_ceil(1000));
                return convert::millis(wait).into();
            }
        }
    }
}

impl Link {
    /// Whether the throttle has no newer link: two would take from each other what is to be
    /// reported.
    fn is_newest(&self) -> bool {
        self.exchange.exchanger().0 == self.incarnation
    }

    fn work(&mut self, work: impl FnOnce(&mut Engine, u64)) {
        if self.is_newest() {
            let now = self.exchange.now();
            work(&mut self.engine, now);
        }
    }
}

fn carried(Transmit { to, bytes }: Transmit) -> JsValue {
    let list = js_sys::Array::of1(&js_sys::Uint8Array::from(bytes.as_slice()));
    match to {
        To::One(address) => push(&list, address),
        To::Each(addresses) => addresses.iter().for_each(|address| push(&list, *address)),
        To::Group => drop(list.push(&"group".into())),
    }
    list.into()
}

fn push(list: &js_sys::Array, address: PeerAddr) {
    // The host gave all addresses as IP addresses.
    if let Some(address) = address.socket_addr() {
        list.push(&address.to_string().into());
    }
}

/// An address at which a node can be reached. One of IPv4 that a socket of IPv6 shows is one of
/// IPv4.
fn parse(name: &str, text: &str) -> Result<PeerAddr> {
    let address = text.parse::<SocketAddr>();
    let address =
        address.map(|address| SocketAddr::new(address.ip().to_canonical(), address.port()));
    match address {
        Ok(address) if address.port() != 0 && !address.ip().is_unspecified() => Ok(address.into()),
        _ => {
            let shown: String = text.chars().take(SHOWN).collect();
            Err(argument(format!(
                "{name}: must be the IP address and port of a node, such as 10.0.0.1:7373 or \
                 [fd00::1]:7373, not {shown:?}"
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
