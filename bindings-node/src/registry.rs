//! The open domains and middleware of a thread, by id. Hot calls use ids, because reading a number
//! takes less time than reading a JavaScript object, and a wrong id is only an error.
//!
//! A function for each domain, with a pointer to it, was not faster, because with several functions
//! the JavaScript engine cannot predict which one is called.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread::LocalKey;

use dthrottle::web::Middleware;
use dthrottle::{Domain, Error, ErrorKind};

use crate::failure::CallError;

thread_local! {
    static DOMAINS: Rc<Registry<Domain>> = Rc::default();
    static MIDDLEWARE: Rc<Registry<Middleware>> = Rc::default();
}

/// A type that has a registry.
pub(crate) trait Registered: Sized + 'static {
    fn registry() -> &'static LocalKey<Rc<Registry<Self>>>;
}

impl Registered for Domain {
    fn registry() -> &'static LocalKey<Rc<Registry<Domain>>> {
        &DOMAINS
    }
}

impl Registered for Middleware {
    fn registry() -> &'static LocalKey<Rc<Registry<Middleware>>> {
        &MIDDLEWARE
    }
}

/// All values of one type in a thread. `raw::Environment` keeps a pointer to it, because finding a
/// thread-local value takes time.
pub(crate) struct Registry<T>(RefCell<Entries<T>>);

struct Entries<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Registry(RefCell::new(Entries { values: Vec::new(), free: Vec::new() }))
    }
}

impl<T: Registered> Registry<T> {
    /// The registry of this thread.
    pub(crate) fn current() -> Rc<Registry<T>> {
        T::registry().with(Rc::clone)
    }

    /// Calls `call` with the value that has this id. `None` if there is none.
    #[inline(always)]
    pub(crate) fn find<R>(&self, id: u32, call: impl FnOnce(&T) -> R) -> Option<R> {
        match self.0.borrow().values.get(id as usize) {
            Some(Some(value)) => Some(call(value)),
            _ => None,
        }
    }
}

impl Registry<Domain> {
    /// Calls `call` with the domain that has this id.
    #[inline(always)]
    pub(crate) fn with<R>(
        &self,
        id: u32,
        call: impl FnOnce(&Domain) -> Result<R, CallError>,
    ) -> Result<R, CallError> {
        self.find(id, call).unwrap_or_else(|| Err(unknown(id).into()))
    }
}

/// The entry of a value, which is removed when this is dropped. It cannot leave its thread, because
/// the id has no meaning in another one.
pub(crate) struct Entry<T: Registered> {
    id: u32,
    registry: Rc<Registry<T>>,
}

impl<T: Registered> Entry<T> {
    pub(crate) fn new(value: T) -> Entry<T> {
        let registry = Registry::current();
        let mut entries = registry.0.borrow_mut();
        let id = match entries.free.pop() {
            Some(id) => {
                entries.values[id as usize] = Some(value);
                id
            }
            None => {
                entries.values.push(Some(value));
                (entries.values.len() - 1) as u32
            }
        };
        drop(entries);
        Entry { id, registry }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Calls `call` with the value, unless it was taken.
    pub(crate) fn find<R>(&self, call: impl FnOnce(&T) -> R) -> Option<R> {
        self.registry.find(self.id, call)
    }

    /// Removes the value, and keeps its id from being used again.
    pub(crate) fn take(&self) -> Option<T> {
        self.registry.0.borrow_mut().values[self.id as usize].take()
    }
}

impl<T: Registered> Drop for Entry<T> {
    fn drop(&mut self) {
        // Node runs finalizers between calls, not during one.
        let value = self.take();
        self.registry.0.borrow_mut().free.push(self.id);
        drop(value);
    }
}

#[cold]
fn unknown(id: u32) -> Error {
    Error::new(ErrorKind::Internal, format!("no domain has id {id}"))
}
