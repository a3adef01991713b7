"""Hosts in a separate network of a test: namespaces of network, names, processes and mounts, connected by a switch.

The network is invisible on the machine, and removed whenever the test process ends. Users other than root need
permission to create user namespaces.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

_MISSING: Final = (
    "this test needs network namespaces: the program ip (Debian: apt-get install iproute2), and root with "
    "CAP_SYS_ADMIN and CAP_NET_ADMIN (in a container: docker run --privileged) or permission to create user namespaces"
)
#: The network of the hosts; the test process has its last address.
_NETWORK: Final = "10.77.0"
_HERE: Final = f"{_NETWORK}.254"
_SWITCH: Final = (
    f"ip link set lo up && ip link add switch type bridge && ip address add {_HERE}/24 dev switch "
    "&& ip link set switch up && echo up && exec cat"
)
_HOST: Final = 'hostname "$0" && ip link set lo up && echo up && exec cat'


@dataclass(frozen=True)
class Host:
    """A host of servers. ``within`` is the prefix of every command."""

    address: str
    within: Sequence[str]

    def seen(self, port: int) -> int:
        """Return the loopback port at which the test process reaches a port of the host."""
        return port


THIS_HOST: Final = Host("127.0.0.1", ())


class Network:
    """A switch to which hosts are connected. Use :func:`network`."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        is_root = os.getuid() == 0
        # Other users are root in a user namespace of their own.
        self._as_root = [] if is_root else ["--user", "--preserve-credentials"]
        to_root = [] if is_root else ["--user", "--map-root-user"]
        self._switch = self._hold(["unshare", *to_root, "--net", "sh", "-c", _SWITCH])
        self._addresses = iter(range(1, 254))

    def host(self, name: str) -> NamespaceHost:
        """Connect a new host."""
        namespaces = ["--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        holder = self._hold([*self._within(self._switch.pid), "unshare", *namespaces, "sh", "-c", _HOST, name])
        # The first process of the namespace, with its id on this machine.
        first = _only_child(holder.pid)
        within = self._within(first, "--net", "--uts", "--pid", "--mount")
        host = NamespaceHost(f"{_NETWORK}.{next(self._addresses)}", within, name, self, holder)
        self.configure("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(first))
        self.configure("link", "set", name, "master", "switch", "up")
        host.execute("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        host.execute("ip", "link", "set", "eth0", "up")
        return host

    def configure(self, *words: str) -> None:
        """Run ``ip`` in the namespace of the switch."""
        subprocess.run([*self._at_switch, "ip", *words], check=True, env=_environment())

    def relayed(self, address: str, port: int) -> int:
        """Open a port on this machine's loopback that is forwarded to a port of a host."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            relay = [sys.executable, str(Path(__file__).with_name("relay.py")), str(listener.fileno())]
            process = subprocess.Popen(
                [*self._at_switch, *relay, address, str(port)], stdin=subprocess.PIPE, pass_fds=[listener.fileno()]
            )
            self.end_with(process)
            return int(listener.getsockname()[1])

    def end_with(self, process: subprocess.Popen[bytes]) -> None:
        """End a process when the network ends."""
        self._stack.callback(_end, process)

    @property
    def _at_switch(self) -> list[str]:
        return self._within(self._switch.pid, "--net")

    def _within(self, process: int, *namespaces: str) -> list[str]:
        """Return the prefix of a command that enters namespaces of a process."""
        return ["nsenter", "--target", str(process), *namespaces, *self._as_root]

    def _hold(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a process that keeps namespaces alive until its standard input is closed."""
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment())
        self.end_with(holder)
        assert holder.stdout is not None
        if holder.stdout.readline() != b"up\n":
            pytest.fail(_MISSING, pytrace=False)
        return holder


@dataclass(frozen=True)
class NamespaceHost(Host):
    """A host of a :class:`Network`. Its process ids are its own, so that other hosts cannot tell whether one is
    alive."""

    name: str
    network: Network = field(repr=False)
    holder: subprocess.Popen[bytes] = field(repr=False)

    def execute(self, *words: str) -> None:
        """Run a command, which must succeed."""
        subprocess.run([*self.within, *words], check=True, env=_environment())

    def start(self, *words: str, log: Path) -> subprocess.Popen[bytes]:
        """Start a command; its output is added to the log."""
        with log.open("ab") as output:
            process = subprocess.Popen([*self.within, *words], stdout=output, stderr=output)
        self.network.end_with(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Send SIGKILL to a process that :meth:`start` returned, but not to its children."""
        os.kill(_only_child(process.pid), signal.SIGKILL)
        process.wait()

    def unplug(self) -> None:
        """Disconnect the host: its packets are lost without an error."""
        self.network.configure("link", "set", self.name, "down")

    def plug(self) -> None:
        """Connect the host again."""
        self.network.configure("link", "set", self.name, "up")

    def power_off(self) -> None:
        """End the host like a power failure: all processes at once, without closing connections."""
        self.unplug()
        _end(self.holder)

    def seen(self, port: int) -> int:
        return self.network.relayed(self.address, port)


@contextmanager
def network() -> Iterator[Network]:
    """Run an empty network for the length of the ``with``."""
    with ExitStack() as stack:
        yield Network(stack)


def _environment() -> dict[str, str]:
    """Return this process's environment with the folders of administrative programs in PATH."""
    return os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}


def _only_child(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
