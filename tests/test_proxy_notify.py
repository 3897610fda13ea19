"""What the service manager is told, over a real datagram socket."""

import os
import socket
import sys

import pytest

from proxy.notify import ALIVE, READY, notify, reloading, watchdog_ms


def listener(name):
    """A socket to be told on."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(name)
    sock.settimeout(2)
    return sock


def test_lines_arrive_as_one_datagram(tmp_path):
    """At the path that was named."""
    with listener(str(tmp_path / "notify")) as sock:
        notify(READY, "STATUS=it listens", environ={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        assert sock.recv(1000) == b"READY=1\nSTATUS=it listens"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract sockets")
def test_an_abstract_address_begins_with_an_at_sign():
    """systemd uses them where it can."""
    name = f"ocpool-test-{os.getpid()}"
    with listener(f"\0{name}") as sock:
        notify(ALIVE, environ={"NOTIFY_SOCKET": f"@{name}"})
        assert sock.recv(1000) == b"WATCHDOG=1"


@pytest.mark.parametrize("address", ["", "relative", "vsock:2:1", "/no/such/folder/socket", "/" + "x" * 300, "@"])
def test_nobody_to_tell_is_no_error(address):
    """Also where the manager is gone or speaks something else."""
    notify(READY, environ={"NOTIFY_SOCKET": address})
    notify(READY, environ={})


def test_a_manager_that_does_not_read_holds_up_nobody(tmp_path):
    """Its buffer fills up and the rest is lost."""
    with listener(str(tmp_path / "notify")):
        for _ in range(3000):
            notify("STATUS=" + "x" * 1000, environ={"NOTIFY_SOCKET": str(tmp_path / "notify")})


def test_a_reload_says_when_it_began_in_microseconds():
    """Of the monotonic clock."""
    assert reloading(1234.5678) == "RELOADING=1\nMONOTONIC_USEC=1234568"


def test_half_of_the_time_that_the_unit_allows_is_the_rhythm():
    """In milliseconds; a variable meant for another process counts for nothing."""
    me = str(os.getpid())
    assert watchdog_ms({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": me}) == 15_000
    assert watchdog_ms({"WATCHDOG_USEC": "30000000"}) == 15_000
    for environ in ({}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "5", "WATCHDOG_PID": "1"}):
        assert watchdog_ms(environ) is None
