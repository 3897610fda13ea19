"""tests/bench/parts.py"""

from tests.bench import parts


def test_every_part_of_every_kind_of_request_is_measured(monkeypatch):
    monkeypatch.setattr(parts, "_ROUNDS", 2)
    monkeypatch.setattr(parts, "_EACH", 8)
    found = parts.costs()
    requests = {(cost.kind, cost.stage) for cost in found if cost.stage in parts.STAGES}
    assert requests == {(kind, stage) for kind in parts.KINDS for stage in parts.STAGES}
    assert all(0 < cost.us < 100_000 for cost in found)
    events = [cost.us for cost in found if cost.stage == "read an event"]
    assert len(events) == 2


def test_each_kind_of_request_goes_the_way_its_name_says(tmp_path):
    """A named conversation is one, the others are many; none is taken for another."""
    labels = {}
    for kind, fields, asks in (
        (parts.KINDS[0], [(b"x-opencode-session", b"bench")], parts._begun()),
        (parts.KINDS[1], [], parts._begun()),
        (parts.KINDS[2], [], parts._continued()),
    ):
        daemon = parts.build(
            parts.load(None, [f"state.path={tmp_path / kind / 'state.json'}"], {}), parts.Clock(), parts.Redactor(())
        )
        way = parts.Way(daemon, fields)
        for _ in range(3):
            way.play(next(asks)[:5])
        labels[kind] = len(daemon.registry)
        daemon.events.close()
        daemon.usage.close()
    assert labels == {parts.KINDS[0]: 1, parts.KINDS[1]: 15, parts.KINDS[2]: 5}
