"""pool/ids.py"""

import re
import uuid

from pool.ids import id_digest, new_id, short
from pool.model import Shape


def test_an_id_of_the_uuid_shape_is_a_random_uuid():
    made = uuid.UUID(new_id(Shape.UUID))
    assert made.version == 4


def test_an_id_of_the_ses_shape_is_ses_twelve_hex_and_fourteen_base62():
    assert re.fullmatch(r"ses_[0-9a-f]{12}[0-9A-Za-z]{14}", new_id(Shape.SES))


def test_no_two_ids_are_alike():
    assert len({new_id(shape) for shape in Shape for _ in range(500)}) == 1000


def test_digests_are_of_fixed_length_and_do_not_raise_on_odd_text():
    assert len(id_digest("\ud800x")) == 16
    assert short("abc") == id_digest("abc")[:8] == "ba7816bf"
