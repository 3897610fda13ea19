"""The bounded scan of a body that is too large to parse."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy.conversation import scan as scanner
from proxy.conversation.scan import TOKENS, WINDOW, scan

FILL = "x" * (2 * WINDOW)
LURE = '{"model":"wrong","stream":true},"model":"wrong","stream":true,'


def scanned(document, cut=1 << 16):
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    return scan([raw[start : start + cut] for start in range(0, len(raw), cut)])


@pytest.mark.parametrize("cut", [1000, 1 << 16, 1 << 30])
def test_keys_are_found_at_both_ends(cut):
    """Clients put them before the messages, or behind, or one here and one there."""
    messages = [{"role": "user", "content": FILL}]
    assert scanned({"model": "m", "stream": True, "messages": messages}, cut) == ("m", True)
    assert scanned({"messages": messages, "model": "m", "stream": True}, cut) == ("m", True)
    assert scanned({"model": "m", "messages": messages, "stream": True}, cut) == ("m", True)
    assert scanned({"model": "m", "messages": messages, "stream": False}, cut) == ("m", False)
    assert scanned({"model": "m", "messages": messages}, cut) == ("m", False)


@pytest.mark.parametrize(
    "lure", [LURE, LURE.replace('"', '\\"'), LURE * 2000, "\\", '\\\\"', '"', '"model":', '\\"model\\":\\"wrong']
)
def test_words_inside_messages_are_passed_over(lure):
    """However they are quoted, whichever side of the windows' edges they stand on."""
    first = {"role": "user", "content": lure + FILL + lure}
    assert scanned({"messages": [first], "model": "m", "stream": False}) == ("m", False)
    assert scanned({"model": "m", "stream": False, "messages": [first]}) == ("m", False)
    assert scanned({"messages": [first, lure]}) == (None, False)
    assert scanned({"messages": [lure], "x": FILL, "y": lure}) == (None, False)


def test_keys_of_nested_objects_are_passed_over():
    """A tool's parameters may have a model of their own."""
    nested = {"model": "wrong", "stream": True, "deeper": [{"model": "wrong"}]}
    assert scanned({"tools": [nested], "metadata": nested, "messages": [FILL], "extra": nested}) == (None, False)


def test_as_in_a_parse_the_last_of_two_equal_keys_counts():
    """Within a window, and of the two windows the last."""
    assert scanned(f'{{"model":"a","x":"{FILL}","model":"b","model":"c","stream":true,"stream":false}}'.encode()) == (
        "c",
        False,
    )
    assert scanned(f'{{"model":"a","model":"b","stream":true,"x":"{FILL}"}}'.encode()) == ("b", True)


def test_a_key_in_the_middle_is_not_found():
    """The scan is bounded: the request then goes on without a model."""
    assert scanned({"a": FILL, "model": "m", "stream": True, "b": FILL}) == (None, False)


@pytest.mark.parametrize("value", [b"7", b"null", b"true", b'["m"]', b'{"id":"m"}', b'"\\ud800"'])
def test_a_model_that_is_no_string_is_none(value):
    """A number, a list, half of a surrogate pair."""
    fill = FILL.encode()
    assert scanned(b'{"model":' + value + b',"x":"' + fill + b'"}')[0] is None
    assert scanned(b'{"x":"' + fill + b'","model":' + value + b"}")[0] is None


@pytest.mark.parametrize("escaped", ["m\\u006fdel", 'a\\"b', "\\\\", "ü", "模型"])
def test_a_model_is_unescaped(escaped):
    """As a parser would."""
    raw = f'{{"model":"{escaped}","x":"{FILL}"}}'.encode()
    assert scanned(raw)[0] == json.loads(raw)["model"]
    raw = f'{{"x":"{FILL}","model":"{escaped}"}}'.encode()
    assert scanned(raw)[0] == json.loads(raw)["model"]


def test_a_value_on_the_edge_of_its_window_is_not_found_rather_than_cut():
    """Half a name would be another model's."""
    for shift in range(-12, 13):
        space = " " * (WINDOW - 14 + shift)
        model, _ = scanned(f'{{{space}"model":"kimi-k3","x":"{FILL}"}}'.encode())
        assert model in {None, "kimi-k3"}
        model, _ = scanned(f'{{"x":"{FILL}","model":"kimi-k3"{space}}}'.encode())
        assert model in {None, "kimi-k3"}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"}",
        b"[]",
        b'"',
        b"\\",
        b'"model":"m"',
        b'"model":"m","stream":true}',
        b"[" * WINDOW * 3,
        b'"' * WINDOW * 3,
        b"\\" * WINDOW * 3,
        b'[{"model":"m"}]',
    ],
)
def test_what_is_no_object_gives_nothing(raw):
    """It is not JSON, or not ours to read."""
    assert scan([raw, b""])[0] is None or raw.endswith(b"true}")


def test_the_time_is_bounded_by_tokens():
    """A list of a million numbers is given up on."""
    assert scanned(b'{"x":[' + b"1," * (TOKENS * 4) + b'1],"model":"m"}')[0] == "m"
    assert scanned(b'{"model":"m","x":[' + b"1," * (TOKENS * 4) + b"1]}")[0] == "m"
    assert scanned(b'{"a":[' + b"1," * TOKENS + b'1],"model":"m","b":[' + b"1," * TOKENS + b"1]}")[0] is None


texts = st.text(alphabet='"\\{}[]:,modelstrau \n', max_size=12)
values = st.recursive(
    texts | st.booleans() | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts | st.sampled_from(["model", "stream"]), inner, max_size=3)
    ),
    max_leaves=8,
)
pairs = st.lists(st.tuples(texts | st.sampled_from(["model", "stream"]), values), max_size=6)


def spelled(members):
    return b"{" + b",".join(f"{json.dumps(key)}:{json.dumps(value)}".encode() for key, value in members) + b"}"


@given(pairs, pairs)
@example([("model", "m"), ("model", [])], [])
@settings(max_examples=200)
def test_the_scan_agrees_with_a_parser(front, back):
    """With the middle out of sight, both ends are read as a parser reads them."""
    raw = spelled([*front, ("fill", FILL), *back])
    document = json.loads(raw)
    model = document.get("model")
    assert scan([raw]) == (model if isinstance(model, str) else None, document.get("stream") is True)


@given(pairs, st.integers(1, 40))
@settings(max_examples=200)
def test_the_scan_agrees_with_a_parser_wherever_a_window_ends(members, window):
    """What it finds with any window is what a parser finds, or nothing; lies are never found."""
    raw = spelled(members)
    ends = {json.dumps(value) for key, value in members if key == "model"}
    forward = [token for name, token in scanner._from_start(raw[:window]) if name == "model"]
    backward = [token for name, token in scanner._from_end(raw[-window:]) if name == "model"]
    for token in forward + backward:
        assert token[:1] in b"[{" or token.decode() in ends


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_no_bytes_raise(chunks):
    """Whatever bytes come."""
    model, stream = scan(chunks)
    assert model is None or isinstance(model, str)
    assert type(stream) is bool
