//! dthrottle for c.
