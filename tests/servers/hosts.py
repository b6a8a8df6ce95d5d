"""Hosts for servers: network namespaces if the user is root, otherwise this host several times.

Each host has a thread in its namespace. Threads and processes that this thread starts are on the
same host, where 127.0.0.1 is the host itself.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from server import free_port

CLONE_NEWNET = 0x40000000
NAMESPACES = Path("/var/run/netns")

Result = TypeVar("Result")


@dataclass
class Host:
    """A host on which a server runs."""

    node: str
    """Address and port of the node on this host."""
    _thread: ThreadPoolExecutor

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function on this host."""
        return self._thread.submit(function, *arguments).result()


def _network(count: int) -> Any:
    """Create connected namespaces with the code of the cluster tests."""
    path = Path(__file__).parents[1] / "cluster" / "network.py"
    spec = importlib.util.spec_from_file_location("network", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Network(count)


def _move(namespace: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with (NAMESPACES / namespace).open() as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot move to {namespace}")


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """Create hosts."""
    with ExitStack() as stack:
        if os.geteuid() != 0:
            threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(count)]
            yield [Host(f"127.0.0.1:{free_port()}", thread) for thread in threads]
            return
        network = _network(count)
        stack.callback(network.close)
        made = []
        for number in network.hosts:
            thread = stack.enter_context(ThreadPoolExecutor(1))
            thread.submit(_move, network.namespace(number)).result()
            made.append(Host(network.address(number), thread))
        yield made
