//! Direct use of Python's C API. This is the only file of this crate with unsafe code.
//!
//! `allow` is a function of the C API, because it is 44 times as fast as limits (`make bench-python
//! PARTS=calls`), and the method that PyO3's macros make is only 35 times as fast. It handles calls
//! with one or two positional arguments. All other calls, and all that fail, go to PyO3's method.
#![allow(unsafe_code, reason = "one of the homes of unsafe code; see ARCHITECTURE.md")]

use std::ffi::CStr;
use std::ptr;

use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyBool, PyDict, PyTuple};
use pyo3::{PyClass, ffi};

use crate::domain;
use crate::errors::{CallError, guard, ok};

const NAME: &CStr = c"allow";
const DOC: &CStr = c"allow($self, tag, cost=1)\n--\n\n\
    Asks for cost units, and takes them if they pass: True or False.";
/// The attribute of the class that refers to PyO3's method.
const MACRO_METHOD: &str = "_allow";

/// The number of the current interpreter in this process.
pub(crate) fn interpreter_id(_: Python<'_>) -> i64 {
    // SAFETY: this thread is attached.
    let interpreter = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: an attached thread has an interpreter, so it is not null.
    unsafe { ffi::PyInterpreterState_GetID(interpreter) }
}

/// A class whose `allow` is replaced.
pub(crate) trait HasDomain: PyClass<Frozen = True> + Sync {
    fn domain(&self) -> &dthrottle::Domain;
}

/// Replaces the method `allow` of a class.
pub(crate) fn replace_allow<T: HasDomain>(py: Python<'_>) -> PyResult<()> {
    let class = T::type_object(py);
    if class.getattr("__dict__")?.contains(MACRO_METHOD)? {
        return Ok(()); // the module was imported before in this interpreter
    }
    class.setattr(MACRO_METHOD, class.getattr("allow")?)?;
    let call = ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: allow::<T> };
    // Python keeps a pointer to it for as long as the class lives.
    let method = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: NAME.as_ptr(),
        ml_meth: call,
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: DOC.as_ptr(),
    }));
    // SAFETY: the class is alive, the definition is never freed, and its flags fit its function.
    let method = unsafe { ffi::PyDescr_NewMethod(class.as_type_ptr(), method) };
    // SAFETY: a new reference, or null with an exception set.
    let method = unsafe { Bound::from_owned_ptr_or_err(py, method) }?;
    class.setattr("allow", method)
}

/// The method that Python calls. It never unwinds, because everything that can panic runs inside
/// `ok` or `guard`.
unsafe extern "C" fn allow<T: HasDomain>(
    slf: *mut ffi::PyObject,
    values: *const *mut ffi::PyObject,
    given: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this, so this thread is attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: Python holds a reference to it until this returns.
    let slf = unsafe { Borrowed::from_ptr(py, slf) };
    let argument = |i| {
        // SAFETY: `values` holds `given` arguments, and then the value of each keyword.
        let place = unsafe { values.add(i) };
        // SAFETY: as above.
        let value = unsafe { place.read() };
        // SAFETY: Python holds a reference to it until this returns.
        unsafe { Borrowed::from_ptr(py, value) }
    };
    if names.is_null() && (given == 1 || given == 2) {
        // SAFETY: the descriptor checked that `slf` is an instance of its class.
        let domain = unsafe { slf.cast_unchecked::<T>() }.get().domain();
        let cost = (given == 2).then(|| argument(1));
        if let Some(allowed) = ok(|| domain::allow(domain, &argument(0), cost.into())) {
            return PyBool::new(py, allowed).to_owned().into_ptr();
        }
        // PyO3's method raises the error. To make an exception here, PyO3 would attach this thread,
        // which never returns in a subinterpreter before Python 3.12.
    }
    // SAFETY: a tuple that Python holds until this returns, or null.
    let names = unsafe { Bound::from_borrowed_ptr_or_opt(py, names) };
    match guard(|| call_macro_method(slf, given as usize, names, argument)) {
        Ok(allowed) => PyBool::new(py, allowed).to_owned().into_ptr(),
        Err(error) => {
            error.restore(py);
            ptr::null_mut()
        }
    }
}

#[cold]
fn call_macro_method<'a, 'py: 'a>(
    slf: Borrowed<'a, 'py, PyAny>,
    given: usize,
    names: Option<Bound<'py, PyAny>>,
    argument: impl Fn(usize) -> Borrowed<'a, 'py, PyAny>,
) -> Result<bool, CallError> {
    let py = slf.py();
    let positional = PyTuple::new(py, (0..given).map(&argument).collect::<Vec<_>>())?;
    let keywords = PyDict::new(py);
    let names = names.iter().flat_map(PyAnyMethods::try_iter).flatten();
    for (name, i) in names.zip(given..) {
        keywords.set_item(name?, argument(i))?;
    }
    Ok(slf.getattr(MACRO_METHOD)?.call(positional, Some(&keywords))?.extract()?)
}
