//! After a fork, the child has the owner of the thread but not the thread itself. It must not wait
//! for that thread, and can start its own.

use crate::test_engine::to_one;
use crate::test_node::TestNode;

#[test]
fn a_forked_child_starts_its_own_thread() {
    let (mut node, peer) = (TestNode::start("127.0.0.1:0"), TestNode::start("127.0.0.1:0"));
    let (address, to) = (node.address(), peer.address());
    assert!(node.background.is_here());
    // SAFETY: the child uses nothing that another thread of the parent may have locked, except
    // memory, which the C library makes safe.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let foreign = !node.background.is_here();
        node.background.stop();
        let own = TestNode::start("127.0.0.1:0");
        own.send(to_one(to, own.address().to_string()));
        own.send(to_one(own.address(), *b"to itself"));
        own.receives(b"to itself");
        drop(own);
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(if foreign { 42 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: writes the status of this process's child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), 42, "{status:x}");
    node.send(to_one(to, *b"the parent goes on"));
    assert_eq!(peer.receives(b"the parent goes on"), address);
    let received = peer.shared.received.lock().unwrap();
    assert!(received.iter().any(|(from, bytes)| bytes == from.to_string().as_bytes()));
}
