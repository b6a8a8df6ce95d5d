//! dthrottle for node.
