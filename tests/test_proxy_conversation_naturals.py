"""Natural ids: the client's value for the first conversation with it, else a minted one that lasts."""

import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool.model import Shape
from proxy.conversation.naturals import Naturals, digest_of, mint, shape_of

SECRET = bytes(32)
SES = "ses_4a1b2c3d4e5fABCDEFGHIJKLMN"
A, B = "a" * 16, "b" * 16


def naturals(held=None, remember=8):
    return Naturals(SECRET, (held or {}).get, remember)


def test_the_first_conversation_with_a_value_uses_it_and_no_other_does():
    """Whatever scope the others are in."""
    claims = naturals()
    first = claims.fix(A, SES, Shape.SES)
    assert (first.value, first.minted, first.digest) == (SES, False, digest_of(SECRET, SES))
    assert claims.fix(A, SES, Shape.SES) == first
    second = claims.fix(B, SES, Shape.SES)
    assert second == mint(SECRET, B, Shape.SES)
    assert second.value != SES


def test_a_claim_outlives_a_restart_through_the_stored_digest():
    """The binding holds the digest, never the value."""
    held = {digest_of(SECRET, SES): A}
    assert naturals(held).fix(B, SES, Shape.SES).minted
    assert naturals(held).fix(A, SES, Shape.SES).value == SES


def test_a_forgotten_conversations_claim_is_kept_for_a_while():
    """It may come back, and nobody took its id meanwhile."""
    claims = naturals()
    claims.release(claims.fix(A, SES, Shape.SES))
    assert claims.fix(B, SES, Shape.SES).minted
    assert claims.fix(A, SES, Shape.SES).value == SES


def test_kept_claims_are_bounded():
    """The oldest go."""
    claims = naturals(remember=2)
    for number in range(5):
        claims.release(claims.fix(A, f"value-{number}", Shape.UUID))
    assert [claims.fix(B, f"value-{number}", Shape.UUID).minted for number in range(5)] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_a_value_that_not_every_server_reads_alike_is_not_sent():
    """Its conversation has a minted id."""
    assert naturals().fix(A, "Grüße-aus-dem-Feld", Shape.UUID).minted


def test_without_a_value_the_id_is_minted():
    """And releasing it takes nobody's claim."""
    claims = naturals()
    minted = claims.fix(A, None, Shape.UUID)
    assert minted == mint(SECRET, A, Shape.UUID)
    claims.release(minted)
    assert claims.fix(A, None, Shape.UUID) == minted


def test_minted_ids_are_the_same_after_a_restart():
    """Nothing has to be stored for it."""
    assert mint(SECRET, A, Shape.UUID).value == "1b1be2ac-95bd-4a7e-983c-5c938c711a4f"
    assert mint(SECRET, A, Shape.SES).value == "ses_362107dce2f9Bo9KipWN4wf2SU"


@given(st.text("0123456789abcdef", min_size=16, max_size=16))
def test_minted_ids_have_their_shape(label):
    """A random UUID to look at, or OpenCode's own."""
    value = mint(SECRET, label, Shape.UUID).value
    assert str(uuid.UUID(value)) == value
    assert uuid.UUID(value).version == 4
    assert re.fullmatch(r"ses_[0-9a-f]{12}[0-9A-Za-z]{14}", mint(SECRET, label, Shape.SES).value)


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ([SES], Shape.SES),
        ([None, SES], Shape.SES),
        (["work", SES], Shape.SES),
        ([SES[:-1]], Shape.UUID),
        ([SES + "x"], Shape.UUID),
        (["title-" + SES], Shape.UUID),
        (["ses_4A1B2C3D4E5Fabcdefghijklmn"], Shape.UUID),
        ([None], Shape.UUID),
    ],
)
def test_the_shape_is_the_clients(values, shape):
    """A client may expect its own kind of id."""
    assert shape_of(*values) is shape
