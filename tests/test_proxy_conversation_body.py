"""What is read from a body: the facts, nothing kept, nothing raised, nothing joined without need."""

import gc
import json
import weakref

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.conversation import body
from proxy.conversation.body import PARSE_MAX_BYTES, BodyFacts
from proxy.conversation.content import COUNTED
from proxy.conversation.precedence import BODY_KEYS

UUID = "0198c1f2-7a4b-7c3d-9e8f-0123456789ab"


def read(document, *, encoded=False):
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    return body.read([raw] if raw else [], len(raw), encoded)._replace(content=None)


def test_a_chat_is_read():
    """Model, stream flag, tools, how many messages are no system's, and the size."""
    document = {
        "model": "kimi-k3",
        "stream": True,
        "tools": [{"type": "function"}],
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "developer", "content": "d"},
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": "a"},
        ],
    }
    facts = read(document)
    assert facts == BodyFacts(True, "kimi-k3", True, (), None, True, 2, len(json.dumps(document)))


@pytest.mark.parametrize("cut", [1, 7, 64])
def test_chunks_are_read_as_one(cut):
    """Where a body was cut on the way does not matter."""
    raw = json.dumps({"model": "m", "stream": True, "session_id": "s-1"}).encode()
    chunks = [raw[start : start + cut] for start in range(0, len(raw), cut)]
    assert body.read(chunks, len(raw), False) == body.read([raw], len(raw), False)


@pytest.mark.parametrize(
    ("document", "ids"),
    [
        ({"conversation": "c"}, {("conversation", "c")}),
        ({"conversation": {"id": "c"}}, {("conversation", "c")}),
        ({"conversation": {"name": "c"}}, set()),
        *(({key: "v"}, {(key, "v")}) for key in BODY_KEYS if key != "user_id"),
        *(({"metadata": {key: "v"}}, {(f"metadata.{key}", "v")}) for key in BODY_KEYS if key != "user_id"),
        *(({"extra_body": {key: "v"}}, {(f"extra_body.{key}", "v")}) for key in BODY_KEYS if key != "user_id"),
        ({"metadata": {"user_id": f"user_x_account__session_{UUID}"}}, {("metadata.user_id", UUID)}),
        ({"metadata": {"user_id": json.dumps({"session_id": UUID})}}, {("metadata.user_id", UUID)}),
        ({"metadata": {"user_id": json.dumps({"session_id": 7})}}, set()),
        ({"metadata": {"user_id": "{not json"}}, set()),
        ({"metadata": {"user_id": "[]"}}, set()),
        ({"metadata": {"user_id": "user-17"}}, set()),
        ({"metadata": {"user_id": 17}}, set()),
        ({"user_id": json.dumps({"session_id": UUID})}, set()),
        ({"user": "u", "safety_identifier": "u", "previous_response_id": "r"}, set()),
        ({"metadata": "session_id"}, set()),
        ({"session_id": ""}, set()),
        ({"session_id": "a\u0000b"}, set()),
        ({"session_id": "x" * 257}, set()),
        ({"session_id": "  trimmed "}, {("session_id", "trimmed")}),
    ],
)
def test_ids_are_collected_with_their_places(document, ids):
    """Those of the table, at the top and one level down, and no end user's."""
    assert set(read(document).ids) == ids


def test_the_top_comes_before_what_is_nested():
    """Of one key in two places the outer one is first."""
    facts = read({"extra_body": {"chat_id": "c"}, "metadata": {"chat_id": "b"}, "chat_id": "a"})
    assert [value for _, value in facts.ids] == ["a", "b", "c"]


@pytest.mark.parametrize("value", [7, 1.5, True, None, [], {}, ["s"], {"a": 1}])
def test_a_value_of_another_type_is_passed_over(value):
    """Numbers, lists and objects stand where strings belong, and nothing happens."""
    keys = ["model", "stream", "messages", "tools", "input", "metadata", "extra_body", *BODY_KEYS]
    facts = read(dict.fromkeys(keys, value) | {"metadata": dict.fromkeys(BODY_KEYS, value)})
    assert (facts.parsed, facts.model, facts.ids) == (True, None, ())
    assert facts.stream is (value is True)


@pytest.mark.parametrize(
    "raw",
    [
        b"", b" ", b"{", b"[]", b'"text"', b"7", b"null", b"\xff\xfe", b'{"model": "\xff"}', b"\xef\xbb\xbf{}", b"{} {}",
        b'{"model": NaN}', b"[" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b"GET / HTTP/1.1\r\n\r\n", b"\x1f\x8b\x08",
    ],
)  # fmt: skip
def test_what_is_no_json_object_is_not_parsed(raw):
    """It is passed through on a natural id; here it only has a size."""
    assert read(raw) == BodyFacts(False, input_bytes=len(raw))


def test_of_two_equal_keys_the_last_counts():
    """As in most servers."""
    assert read(b'{"model": "a", "stream": true, "model": "b", "stream": false}')[1:3] == ("b", False)


def test_a_compressed_body_is_not_read():
    """Even when its bytes happen to be JSON."""
    assert read({"model": "m"}, encoded=True) == BodyFacts(False, input_bytes=14)


@pytest.mark.parametrize("model", ["a\nb", "x" * 257, "", " "])
def test_a_model_that_could_not_be_shown_is_none(model):
    """A model's name is written to logs and metrics."""
    assert read({"model": model}).model is None


def test_messages_are_counted_only_as_far_as_anyone_asks():
    """A long history costs no time here."""
    assert read({"messages": [{"role": "user"}] * 1000}).non_system == COUNTED
    assert read({"input": [{"role": "user"}, "text"]}).non_system == 2


def test_a_single_chunk_is_parsed_where_it_lies(monkeypatch):
    """It is not copied first."""
    seen = []
    monkeypatch.setattr(body.orjson, "loads", lambda raw: seen.append(raw) or {})
    raw = b'{"model": "m"}'
    body.read([raw], len(raw), False)
    assert seen[0] is raw


def test_nothing_of_the_document_is_kept(monkeypatch):
    """The facts are strings of their own; the parsed document is gone when they are returned."""

    class Document(dict):
        pass

    kept = []

    def loads(raw):
        document = Document(json.loads(raw))
        kept.append(weakref.ref(document))
        return document

    monkeypatch.setattr(body.orjson, "loads", loads)
    facts = read({"model": "m", "chat_id": "c", "messages": [{"role": "user", "content": "secret"}]})
    gc.collect()
    assert facts.model == "m"
    assert kept[0]() is None


def test_past_four_megabytes_the_body_is_scanned_not_parsed(monkeypatch):
    """Model and stream only; ids come from the fields."""
    monkeypatch.setattr(body.orjson, "loads", forbid_documents(body.orjson.loads))
    big = {"model": "kimi-k3", "chat_id": "c", "messages": ["x" * PARSE_MAX_BYTES], "stream": True}
    facts = read(big)
    assert facts == BodyFacts(False, "kimi-k3", True, input_bytes=len(json.dumps(big)))


def forbid_documents(loads):
    def guarded(raw):
        assert len(raw) < 1000
        return loads(raw)

    return guarded


def test_exactly_four_megabytes_are_parsed():
    """The bound itself is still inside."""
    raw = b'{"chat_id":"c","x":"'
    raw += b"x" * (PARSE_MAX_BYTES - len(raw) - 2) + b'"}'
    assert len(raw) == PARSE_MAX_BYTES
    assert read(raw).ids == (("chat_id", "c"),)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
keys = st.sampled_from(
    ["model", "stream", "messages", "tools", "functions", "input", "metadata", "extra_body", *BODY_KEYS]
)
documents = st.dictionaries(keys, values | st.dictionaries(keys, values, max_size=4), max_size=8)


@given(documents)
def test_no_document_raises_and_every_fact_has_its_type(document):
    """Any JSON object gives facts that can be trusted."""
    facts = read(document)
    assert facts.parsed
    assert facts.model is None or (facts.model.isprintable() and 0 < len(facts.model) <= 256)
    assert facts.stream is (document.get("stream") is True)
    assert type(facts.tools) is bool
    assert 0 <= facts.non_system <= COUNTED
    assert all(value.isprintable() and 0 < len(value) <= 256 for _, value in facts.ids)


@given(st.lists(st.binary(max_size=200), max_size=5), st.booleans())
def test_no_bytes_raise(chunks, encoded):
    """Whatever bytes come, there are facts."""
    size = sum(map(len, chunks))
    assert body.read(chunks, size, encoded).input_bytes == size


@given(documents, st.integers(0, 200), st.binary(max_size=3))
@settings(max_examples=200)
def test_no_damaged_document_raises(document, at, damage):
    """Bytes put in, cut off or changed."""
    raw = orjson.dumps(document, option=orjson.OPT_PASSTHROUGH_DATACLASS) if fits(document) else b"{}"
    for damaged in (raw[:at], raw[:at] + damage + raw[at:], raw[:at] + damage + raw[at + len(damage) :]):
        assert body.read([damaged], len(damaged), False).input_bytes == len(damaged)


def fits(document):
    try:
        orjson.dumps(document)
    except TypeError:
        return False
    return True
