"""Small chunks that are written on before anything else is done: the same bytes, the same end, the same entity."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.connection import Connection
from proxy.wire.framing import DATA_AT, SIZE_LINES, SMALL, Chunked, FramingError, encode_chunk
from proxy.wire.receiver import End

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport to nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted = False

    def set_write_buffer_limits(self, high=None, low=None):
        return

    def write(self, data):
        return

    def is_closing(self):
        return self.aborted

    def abort(self):
        self.aborted = True


class Client:
    """Receives one body; ``patient`` from its ``after``-th piece on, and gone where ``room`` pieces were written."""

    def __init__(self, after: int = 0, room: int = 1_000_000) -> None:
        self.written: list[bytes] = []
        self.entity: list[bytes] = []
        self.told = 0
        self.most_untold = 0
        self.how: End | None = None
        self._after = after
        self._room = room

    def write(self, data: bytes) -> None:
        if len(self.written) >= self._room:
            raise RuntimeError("the handler is closed")
        self.written.append(data)

    @property
    def patient(self) -> bool:
        return len(self.written) >= self._after

    def passed(self, pieces: list[bytes], size: int) -> None:
        self.entity += pieces
        self.told += size
        self.most_untold = max(self.most_untold, len(pieces))

    def sink(self, data: bytes) -> None:
        self.entity.append(data)

    def body(self, data: bytes) -> None:
        if len(self.written) < self._room:
            self.written.append(data)
            self.told += len(data)

    def end(self, how: End) -> None:
        assert self.how is None, "an end comes once"
        self.how = how


def pouring(client: Client) -> Connection:
    """A connection whose answer's head has come."""
    loop = asyncio.new_event_loop()
    connection = Connection(loop, lambda _: None)
    loop.close()
    connection.connection_made(Wire())
    connection.send(b"GET", b"GET / HTTP/1.1\r\n\r\n")
    connection.data_received(HEAD)
    assert connection.pour(client, client.sink, client) == (b"", None)
    return connection


chunks = st.lists(st.binary(min_size=1, max_size=40) | st.just(b"\r\n") | st.just(b"x" * 1_030), max_size=20)


@given(chunks, st.lists(st.integers(0, 2_000), max_size=12), st.booleans(), st.integers(0, 4), st.binary(max_size=9))
def test_however_a_body_comes_all_of_it_goes_on_and_nothing_else(chunks, cuts, one_by_one, after, surplus):
    client = Client(after)
    connection = pouring(client)
    pieces = [encode_chunk(chunk) for chunk in chunks]
    wire = b"".join(pieces) + LAST
    if one_by_one:
        pieces.append(LAST + surplus)
    else:
        offsets = sorted({min(cut, len(wire)) for cut in cuts} | {0, len(wire)})
        pieces = [(wire + surplus)[start:stop] for start, stop in zip(offsets, [*offsets[1:], None], strict=True)]
    for piece in pieces:
        if piece:
            connection.data_received(piece)
    assert b"".join(client.written) == wire
    assert b"".join(client.entity) == b"".join(chunks)
    assert client.told == len(wire)
    assert client.how is End.COMPLETE
    assert connection.reusable is not bool(surplus)


@given(st.binary(max_size=60) | st.builds(lambda size, data: b"%x\r\n%b\r\n" % (size, data), st.integers(0, 70), st.binary(max_size=60)))  # fmt: skip
def test_what_goes_through_is_one_whole_chunk(piece):
    """The size line alone decides: whatever passes for a chunk is one to the framing, too."""
    goes = piece.startswith(SIZE_LINES[len(piece)]) and piece.endswith(b"\r\n")
    framing, entity = Chunked(), []
    try:
        end = framing.feed(piece, entity.append)
    except FramingError:
        assert not goes
        return
    if goes:
        assert (end, framing.between) == (-1, True)
        assert b"".join(entity) == piece[DATA_AT[len(piece)] : -2]


def test_every_small_chunk_is_known_by_its_size():
    for size in range(1, SMALL - 7):
        chunk = encode_chunk(b"x" * size)
        assert chunk.startswith(SIZE_LINES[len(chunk)])
        assert chunk[DATA_AT[len(chunk)] : -2] == b"x" * size


def test_a_chunk_that_breaks_its_framing_goes_on_as_it_came_and_ends_the_body():
    client = Client()
    connection = pouring(client)
    connection.data_received(b"3\r\nabc\r\n")
    for piece in (b"3\r\nabc\r\n", b"3\r\nabcXX", b"3\r\nabc\r\n"):
        connection.data_received(piece)
    assert client.written == [b"3\r\nabc\r\n", b"3\r\nabc\r\n", b"3\r\nabcXX"]
    assert client.how is End.TRUNCATED
    assert not connection.reusable


def test_what_went_through_is_told_before_the_end_and_never_much_later():
    client = Client()
    connection = pouring(client)
    for _ in range(1_000):
        connection.data_received(b"3\r\nabc\r\n")
        assert connection.received - client.told < 64 * 8
    assert 8 <= client.most_untold <= 64
    connection.connection_lost(None)
    assert client.how is End.TRUNCATED
    assert client.told == connection.received == 8_000
    assert b"".join(client.entity) == b"abc" * 1_000


def test_a_dropped_connection_tells_what_went_through():
    client = Client()
    connection = pouring(client)
    for _ in range(3):
        connection.data_received(b"3\r\nabc\r\n")
    connection.abort()
    assert client.told == 24
    connection.data_received(b"3\r\nabc\r\n")
    assert len(client.written) == 3


def test_a_client_whose_transport_is_closed_gets_nothing_more_and_raises_nothing():
    client = Client(room=2)
    connection = pouring(client)
    for _ in range(4):
        connection.data_received(b"3\r\nabc\r\n")
    assert len(client.written) == 2
    assert client.told == 16


def state(connection: Connection) -> dict[str, object]:
    slots = {slot for kind in Connection.__mro__ for slot in getattr(kind, "__slots__", ())}
    values = {slot: getattr(connection, slot) for slot in slots - {"uses", "transport", "_method"}}
    return {slot: list(value) if isinstance(value, list) else value for slot, value in values.items()}


def answered(connection: Connection, wire: bytes) -> None:
    connection.send(b"POST", b"POST / HTTP/1.1\r\n\r\n")
    connection.data_received(wire)


@given(st.binary(max_size=9), st.binary(max_size=3), st.integers(0, 12))
def test_a_whole_answer_is_its_body_and_nothing_past_it(body, surplus, cut):
    connection = pouring(Client())
    connection.data_received(LAST)
    connection.rest(0.0)
    rest = body + surplus
    answered(connection, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), rest[:cut]))
    whole = connection.whole()
    assert whole == (body if len(rest[:cut]) >= len(body) else None)
    if rest[cut:]:
        connection.data_received(rest[cut:])
    assert connection.whole() == body
    assert connection.reusable is not bool(surplus)


def test_a_connection_rests_as_it_began():
    """Whatever its exchange was, nothing of it is left for the next."""
    answers = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 204 None\r\n\r\n",
        HEAD + b"2\r\nhi\r\n" + LAST,
        HEAD,
    )
    for wire in answers:
        connection, client = pouring(Client()), Client()
        connection.data_received(LAST)
        connection.rest(0.0)
        began = state(connection)
        answered(connection, wire)
        if wire is HEAD:
            connection.pour(client, client.sink, client)
            for piece in (b"3\r\nabc\r\n", b"3\r\nabc\r\n", LAST):
                connection.data_received(piece)
        assert connection.reusable
        connection.rest(0.0)
        assert state(connection) == began
        assert (connection._end, connection._head, connection._gathered) == (None, None, [])
