"""Listening sockets: our own, those that are passed, and what is said of them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from config.sections.listen import ListenSection
from proxy.sockets import NotListeningError, beyond_this_machine, listening, passed, url_of

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("host", "bound", "reached"),
    [
        ("127.0.0.1", "http://127.0.0.1:{}", "http://127.0.0.1:{}"),
        ("0.0.0.0", "http://0.0.0.0:{}", "http://127.0.0.1:{}"),
        ("::", "http://[::]:{}", "http://[::1]:{}"),
        ("::1", "http://[::1]:{}", "http://[::1]:{}"),
    ],
)
def test_commands_are_told_an_address_that_they_can_reach(host, bound, reached):
    """0.0.0.0 is none, and no Host that would be let in."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        sock = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("no IPv6 here")
    with sock:
        port = sock.getsockname()[1]
        assert url_of(sock) == bound.format(port)
        assert url_of(sock, reachable=True) == reached.format(port)
        assert beyond_this_machine([sock]) == (host if host in {"0.0.0.0", "::"} else None)


@pytest.mark.parametrize(
    "environ", [{}, {"LISTEN_FDS": "1"}, {"LISTEN_FDS": "1", "LISTEN_PID": "1"}, {"LISTEN_PID": "me"}]
)
def test_what_is_not_meant_for_us_is_left_alone_and_forgotten(environ):
    """A process that we start must not take it for its own either."""
    environ = {name: str(os.getpid()) if value == "me" else value for name, value in environ.items()}
    assert passed(environ) == []
    assert environ == {}


def test_a_taken_port_is_told_apart_from_other_trouble():
    """It has an exit code of its own."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        with pytest.raises(NotListeningError) as caught:
            listening(ListenSection(port=sock.getsockname()[1]))
        assert caught.value.why == NotListeningError.TAKEN
    with pytest.raises(NotListeningError, match="listen.host") as caught:
        listening(ListenSection(host="192.0.2.1", token="0123456789abcdef", port=0))
    assert caught.value.why == ""


@pytest.mark.skipif(sys.platform == "win32", reason="no file descriptors to pass")
@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_STREAM"])
def test_only_listening_tcp_sockets_are_taken(kind):
    """Anything else is a mistake in a unit file, and is said."""
    code = (
        "import os, socket; sock = socket.socket(socket.AF_INET, socket.%s); os.dup2(sock.fileno(), 3)\n"
        "from proxy.sockets import passed\n"
        "try: passed({'LISTEN_FDS': '1', 'LISTEN_PID': str(os.getpid())})\n"
        "except OSError as error: print(error.strerror)"
    )
    done = subprocess.run([sys.executable, "-c", code % kind], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "no listening TCP socket\n"
