//! dthrottle for python.
