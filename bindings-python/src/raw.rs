//! The border of `allow` straight on Python's own interface, a fifth faster than what PyO3's macros
//! make. A call with keywords, or with too few or too many arguments, goes on to the ordinary method.
//! The one file of this crate with unsafe code.
#![allow(unsafe_code, reason = "one of the homes of unsafe code; see ARCHITECTURE.md")]

use std::ffi::CStr;
use std::{iter, ptr};

use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyTuple};
use pyo3::{PyClass, ffi};

use crate::errors::{Fault, guard};
use crate::{args, domain};

const NAME: &CStr = c"allow";
const DOC: &CStr = c"allow($self, tag, cost=1)\n--\n\n\
    Asks for cost units, and takes them if they pass: True or False.";

/// A class with the call.
pub(crate) trait Hot: PyClass<Frozen = True> + Sync {
    fn domain(&self) -> &dthrottle::Domain;

    /// Where its ordinary method is kept.
    fn ordinary() -> &'static PyOnceLock<Py<PyAny>>;
}

/// Puts the call in the place of a class's ordinary method.
pub(crate) fn install<H: Hot>(py: Python<'_>) -> PyResult<()> {
    let class = H::type_object(py);
    H::ordinary().get_or_try_init(py, || class.getattr("allow").map(Bound::unbind))?;
    let call = ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: allow::<H> };
    // Python keeps a pointer to it for as long as it lives.
    let method = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: NAME.as_ptr(),
        ml_meth: call,
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: DOC.as_ptr(),
    }));
    // SAFETY: the class is alive, the definition stays for ever, and its flags say how it is called.
    let method = unsafe { ffi::PyDescr_NewMethod(class.as_type_ptr(), method) };
    // SAFETY: a new reference, or null and an exception.
    let method = unsafe { Bound::from_owned_ptr_or_err(py, method) }?;
    class.setattr("allow", method)
}

/// Where Python comes in. Nothing unwinds out of here: both ways lead through `guard`.
unsafe extern "C" fn allow<H: Hot>(
    slf: *mut ffi::PyObject,
    values: *const *mut ffi::PyObject,
    given: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this, so this thread is attached to it. PyO3 does not know so: a `Py`
    // that is dropped here is let go of when PyO3 next comes in.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: Python keeps it until this returns.
    let slf = unsafe { Borrowed::from_ptr(py, slf) };
    let argument = |i| {
        // SAFETY: Python gives as many arguments as it says, first those without keywords.
        let at = unsafe { values.add(i) };
        // SAFETY: the same.
        let value = unsafe { at.read() };
        // SAFETY: Python keeps them until this returns.
        unsafe { Borrowed::from_ptr(py, value) }
    };
    let answer = if names.is_null() && (given == 1 || given == 2) {
        // SAFETY: the method's descriptor has seen that it is one.
        let domain = unsafe { slf.cast_unchecked::<H>() }.get().domain();
        match given {
            // The same answer, sooner.
            1 => guard(|| Ok(domain.allow(args::tag(&argument(0))?)?)),
            _ => domain::allow(domain, &argument(0), argument(1).into()),
        }
    } else {
        // SAFETY: Python gives a tuple of the keywords, or null, and keeps it until this returns.
        let names = unsafe { Bound::from_borrowed_ptr_or_opt(py, names) };
        guard(|| ordinary::<H>(slf, given as usize, names, argument))
    };
    match answer {
        Ok(allowed) => PyBool::new(py, allowed).to_owned().into_ptr(),
        Err(error) => {
            error.restore(py);
            ptr::null_mut()
        }
    }
}

/// The ordinary method with these arguments; the values of keywords follow those without.
#[cold]
fn ordinary<'a, 'py: 'a, H: Hot>(
    slf: Borrowed<'a, 'py, PyAny>,
    given: usize,
    names: Option<Bound<'py, PyAny>>,
    argument: impl Fn(usize) -> Borrowed<'a, 'py, PyAny>,
) -> Result<bool, Fault> {
    let py = slf.py();
    let positional = iter::once(slf).chain((0..given).map(&argument));
    let positional = PyTuple::new(py, positional.collect::<Vec<_>>())?;
    let keywords = PyDict::new(py);
    if let Some(names) = names {
        for (i, name) in names.try_iter()?.enumerate() {
            keywords.set_item(name?, argument(given + i))?;
        }
    }
    let method = H::ordinary().get(py).expect("kept before it was replaced");
    Ok(method.bind(py).call(positional, Some(&keywords))?.extract()?)
}
