//! The domains that are open in a thread, by number. The hot calls name a domain by its number: it
//! is read from JavaScript in a moment, and a wrong one can do no harm here. (A function for each
//! domain, with a pointer to it, is no quicker when there are several: the engine then no longer
//! knows which one a call will reach.)

use std::cell::RefCell;
use std::rc::Rc;

use dthrottle::{Domain, Error, ErrorKind};

use crate::failure::Fault;

thread_local! {
    static SEATS: Rc<Seats> = Rc::default();
}

/// All seats of a thread. The hot calls have them at hand: to look for a thread's own takes time.
#[derive(Default)]
pub(crate) struct Seats(RefCell<Rows>);

#[derive(Default)]
struct Rows {
    domains: Vec<Option<Domain>>,
    free: Vec<u32>,
}

impl Seats {
    /// Those of this thread.
    pub(crate) fn here() -> Rc<Seats> {
        SEATS.with(Rc::clone)
    }

    /// Makes a call to the domain in a seat.
    #[inline(always)]
    pub(crate) fn with<R>(
        &self,
        number: u32,
        call: impl FnOnce(&Domain) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        match self.0.borrow().domains.get(number as usize) {
            Some(Some(domain)) => call(domain),
            _ => Err(vacant(number).into()),
        }
    }
}

/// A domain's number, which ends with this. It cannot go to another thread, where the number means
/// nothing.
pub(crate) struct Seat {
    number: u32,
    seats: Rc<Seats>,
}

impl Seat {
    pub(crate) fn new(domain: Domain) -> Seat {
        let seats = Seats::here();
        let mut rows = seats.0.borrow_mut();
        let number = match rows.free.pop() {
            Some(number) => {
                rows.domains[number as usize] = Some(domain);
                number
            }
            None => {
                rows.domains.push(Some(domain));
                (rows.domains.len() - 1) as u32
            }
        };
        drop(rows);
        Seat { number, seats }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // Node runs finalizers between calls, not during one.
        let mut rows = self.seats.0.borrow_mut();
        rows.free.push(self.number);
        let domain = rows.domains[self.number as usize].take();
        drop(rows);
        drop(domain);
    }
}

#[cold]
fn vacant(number: u32) -> Error {
    Error::new(ErrorKind::Internal, format!("no domain is in seat {number}"))
}
