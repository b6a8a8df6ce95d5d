//! The domains that are open in a thread, by number. The hot calls name a domain by its number: it
//! is read from JavaScript in a moment, and a wrong one can do no harm here. (A function for each
//! domain, with a pointer to it, is no quicker when there are several: the engine then no longer
//! knows which one a call will reach.)

use std::cell::RefCell;
use std::marker::PhantomData;

use dthrottle::{Domain, Error, ErrorKind};

use crate::failure::Fault;

thread_local! {
    static SEATS: RefCell<Seats> = const { RefCell::new(Seats { domains: vec![], free: vec![] }) };
}

struct Seats {
    domains: Vec<Option<Domain>>,
    free: Vec<u32>,
}

/// A domain's number, which ends with this.
pub(crate) struct Seat {
    number: u32,
    /// It cannot go to another thread, where the number means nothing.
    here: PhantomData<*const ()>,
}

impl Seat {
    pub(crate) fn new(domain: Domain) -> Seat {
        let number = SEATS.with_borrow_mut(|seats| match seats.free.pop() {
            Some(number) => {
                seats.domains[number as usize] = Some(domain);
                number
            }
            None => {
                seats.domains.push(Some(domain));
                (seats.domains.len() - 1) as u32
            }
        });
        Seat { number, here: PhantomData }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // Node runs finalizers between calls, not during one. At the end of a thread the seats may
        // be gone before.
        let domain = SEATS.try_with(|seats| {
            let mut seats = seats.borrow_mut();
            seats.free.push(self.number);
            seats.domains[self.number as usize].take()
        });
        drop(domain);
    }
}

/// Makes a call to the domain in a seat.
pub(crate) fn with<R>(
    number: u32,
    call: impl FnOnce(&Domain) -> Result<R, Fault>,
) -> Result<R, Fault> {
    SEATS.with_borrow(|seats| match seats.domains.get(number as usize) {
        Some(Some(domain)) => call(domain),
        _ => Err(vacant(number).into()),
    })
}

#[cold]
fn vacant(number: u32) -> Error {
    Error::new(ErrorKind::Internal, format!("no domain is in seat {number}"))
}
