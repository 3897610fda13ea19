"""The event log as it is read back."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from proxy.insight.reading import EventReader
from proxy.insight.rotation import RotatingFile


def line(number):
    """One event."""
    return orjson.dumps({"at": 1000 + number, "event": "request", "number": number}) + b"\n"


def numbers(events):
    """Which events these are."""
    return [event["number"] for event in events]


def test_only_what_is_since_the_instant_is_read(tmp_path):
    """The instant itself included."""
    (tmp_path / "e").write_bytes(b"".join(map(line, range(10))))
    reader = EventReader(tmp_path / "e", since=1007)
    assert numbers(reader.stored()) == [7, 8, 9]
    reader.close()


def test_broken_lines_are_skipped_and_counted(tmp_path):
    """Half a line, no JSON, no object, no instant; an empty line is nothing at all."""
    bad = [b'{"at":1', b"\xff\xfe", b"[1]", b'{"event":"x"}', b"", b'{"at":"soon","event":"x"}']
    (tmp_path / "e").write_bytes(line(1) + b"\n".join(bad) + b"\n" + line(2))
    reader = EventReader(tmp_path / "e")
    assert numbers(reader.stored()) == [1, 2]
    assert reader.broken == 5
    reader.close()


def test_a_line_still_being_written_is_waited_for(tmp_path):
    """Its two halves make one event."""
    path = tmp_path / "e"
    path.write_bytes(line(1) + line(2)[:10])
    reader = EventReader(path)
    assert numbers(reader.stored()) == [1]
    assert numbers(reader.more()) == []
    with path.open("ab") as file:
        file.write(line(2)[10:])
    assert numbers(reader.more()) == [2]
    assert reader.broken == 0
    reader.close()


def test_following_survives_rotations_deletion_and_a_log_that_is_not_there_yet(tmp_path):
    """Several rotations between two looks lose nothing."""
    path = tmp_path / "e"
    reader = EventReader(path)
    assert numbers(reader.stored()) == numbers(reader.more()) == []
    log = RotatingFile(path, len(line(1)), 50)
    seen = []
    for number in range(20):
        log.write(line(number))
        if number % 6 == 0:
            seen += numbers(reader.more())
    seen += numbers(reader.more())
    assert seen == list(range(20))
    path.unlink()
    log.write(line(99))
    assert numbers(reader.more()) == [99]
    path.write_bytes(line(1))
    assert numbers(reader.more()) == [1]
    reader.close()


@given(data=st.binary(max_size=2000))
def test_no_bytes_whatsoever_make_the_reader_fail(tmp_path_factory, data):
    """The file may be anything."""
    path = tmp_path_factory.mktemp("any") / "e"
    path.write_bytes(data)
    reader = EventReader(path)
    list(reader.stored())
    reader.close()
