//! What is open in a thread, by number: domains and middleware. The hot calls name one by its number:
//! it is read from JavaScript in a moment, and a wrong one can do no harm here. (A function for each
//! domain, with a pointer to it, is no quicker when there are several: the engine then no longer
//! knows which one a call will reach.)

use std::cell::RefCell;
use std::rc::Rc;
use std::thread::LocalKey;

use dthrottle::web::Middleware;
use dthrottle::{Domain, Error, ErrorKind};

use crate::failure::Fault;

thread_local! {
    static DOMAINS: Rc<Seats<Domain>> = Rc::default();
    static MIDDLEWARE: Rc<Seats<Middleware>> = Rc::default();
}

/// What can have a number.
pub(crate) trait Numbered: Sized + 'static {
    fn all() -> &'static LocalKey<Rc<Seats<Self>>>;
}

impl Numbered for Domain {
    fn all() -> &'static LocalKey<Rc<Seats<Domain>>> {
        &DOMAINS
    }
}

impl Numbered for Middleware {
    fn all() -> &'static LocalKey<Rc<Seats<Middleware>>> {
        &MIDDLEWARE
    }
}

/// All of a kind in a thread. The hot calls have them at hand: to look for a thread's own takes time.
pub(crate) struct Seats<T>(RefCell<Rows<T>>);

struct Rows<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Seats<T> {
    fn default() -> Self {
        Seats(RefCell::new(Rows { values: Vec::new(), free: Vec::new() }))
    }
}

impl<T: Numbered> Seats<T> {
    /// Those of this thread.
    pub(crate) fn here() -> Rc<Seats<T>> {
        T::all().with(Rc::clone)
    }

    /// Calls with what has this number, if there is something.
    #[inline(always)]
    pub(crate) fn find<R>(&self, number: u32, call: impl FnOnce(&T) -> R) -> Option<R> {
        match self.0.borrow().values.get(number as usize) {
            Some(Some(value)) => Some(call(value)),
            _ => None,
        }
    }
}

impl Seats<Domain> {
    /// Makes a call to the domain with a number.
    #[inline(always)]
    pub(crate) fn with<R>(
        &self,
        number: u32,
        call: impl FnOnce(&Domain) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        self.find(number, call).unwrap_or_else(|| Err(vacant(number).into()))
    }
}

/// A number, which ends with this. It cannot go to another thread, where the number means nothing.
pub(crate) struct Seat<T: Numbered> {
    number: u32,
    seats: Rc<Seats<T>>,
}

impl<T: Numbered> Seat<T> {
    pub(crate) fn new(value: T) -> Seat<T> {
        let seats = Seats::here();
        let mut rows = seats.0.borrow_mut();
        let number = match rows.free.pop() {
            Some(number) => {
                rows.values[number as usize] = Some(value);
                number
            }
            None => {
                rows.values.push(Some(value));
                (rows.values.len() - 1) as u32
            }
        };
        drop(rows);
        Seat { number, seats }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Calls with the value, unless it was taken.
    pub(crate) fn find<R>(&self, call: impl FnOnce(&T) -> R) -> Option<R> {
        self.seats.find(self.number, call)
    }

    /// Takes the value away before its number is free.
    pub(crate) fn take(&self) -> Option<T> {
        self.seats.0.borrow_mut().values[self.number as usize].take()
    }
}

impl<T: Numbered> Drop for Seat<T> {
    fn drop(&mut self) {
        // Node runs finalizers between calls, not during one.
        let value = self.take();
        self.seats.0.borrow_mut().free.push(self.number);
        drop(value);
    }
}

#[cold]
fn vacant(number: u32) -> Error {
    Error::new(ErrorKind::Internal, format!("no domain is in seat {number}"))
}
