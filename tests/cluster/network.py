"""Hosts as network namespaces. Each has one interface; a bridge in another namespace connects them.

The bridge has an address too, from which outsiders can send. Needs root.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterable

PORT = 7373
_numbers = itertools.count()


def call(*command: str, text: str | None = None) -> None:
    """Run a command that must succeed."""
    subprocess.run(command, input=text, text=True, check=True, timeout=60)


class Network:
    """A network of hosts, numbered from 1. The bridge is number 0."""

    def __init__(self, hosts: int, *, ipv6: bool = False) -> None:
        self.hosts = range(1, hosts + 1)
        self._ipv6 = ipv6
        self._name = f"dthrottle-{os.getpid()}-{next(_numbers)}"
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove all hosts. Their processes must have exited."""
        for host in (0, *self.hosts):
            subprocess.run(["ip", "netns", "delete", self.namespace(host)], check=False)

    def namespace(self, host: int) -> str:
        """Return the name of a host's namespace."""
        return f"{self._name}-{host}"

    def command_on(self, host: int) -> list[str]:
        """Return the prefix of a command that runs on a host."""
        return ["ip", "netns", "exec", self.namespace(host)]

    def ip_address(self, host: int) -> str:
        """Return the address of a host."""
        return f"fd73::{host + 10}" if self._ipv6 else f"10.73.0.{host + 10}"

    def address(self, host: int, port: int = PORT) -> str:
        """Return the address and port of a node."""
        ip = self.ip_address(host)
        return f"[{ip}]:{port}" if self._ipv6 else f"{ip}:{port}"

    def drop_packets(self, percent: int) -> None:
        """Drop a share of all datagrams that arrive."""
        for host in self.hosts:
            self._filter(host, f"numgen random mod 100 < {percent} drop")

    def partition(self, *groups: Iterable[int]) -> None:
        """Block all traffic between the groups."""
        groups = tuple(tuple(group) for group in groups)
        for group in groups:
            others = [host for other in groups if other != group for host in other]
            addresses = ", ".join(self.ip_address(host) for host in others)
            family = "ip6" if self._ipv6 else "ip"
            for host in group:
                self._filter(host, f"{family} saddr {{ {addresses} }} drop")

    def heal(self) -> None:
        """Remove all filters."""
        for host in self.hosts:
            call(*self.command_on(host), "nft", "flush", "ruleset")

    def _build(self) -> None:
        for host in (0, *self.hosts):
            call("ip", "netns", "add", self.namespace(host))
        self._ip(0, "link set lo up", "link add br0 type bridge", "link set br0 up")
        self._give_address(0, "br0")
        for host in self.hosts:
            peer = f"peer name eth0 netns {self.namespace(host)}"
            self._ip(0, f"link add host{host} type veth {peer}")
            self._ip(0, f"link set host{host} master br0 up")
            self._ip(host, "link set lo up", "link set eth0 up")
            self._give_address(host, "eth0")

    def _filter(self, host: int, rule: str) -> None:
        hook = "type filter hook input priority 0; policy accept;"
        rules = f"flush ruleset\ntable inet test {{\nchain in {{\n{hook}\n{rule}\n}}\n}}\n"
        call(*self.command_on(host), "nft", "-f", "-", text=rules)

    def _give_address(self, host: int, device: str) -> None:
        # nodad makes the address usable immediately.
        rest = f"/64 dev {device} nodad" if self._ipv6 else f"/24 dev {device}"
        self._ip(host, f"address add {self.ip_address(host)}{rest}")

    def _ip(self, host: int, *lines: str) -> None:
        call("ip", "-n", self.namespace(host), "-batch", "-", text="\n".join(lines) + "\n")
