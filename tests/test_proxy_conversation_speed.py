"""What recognition costs: a turn what is new in it, a client's id next to nothing, a conversation a few kilobytes.

CPU time, the best of several, and ratios within one run, because the machine is shared.
"""

import gc
import json
import os
import random
import time

import orjson
import pytest

from proxy.conversation import body
from proxy.conversation.ids import read_ids
from proxy.conversation.registry import Registry
from tests.fakes.talk import GO, SECRET, Talk, assistant, label, limits, result, system, user

DRAW = random.Random(7)
WORDS = ["".join(DRAW.choices("abcdefghijklmnopqrstuvwxyz", k=DRAW.randint(2, 10))) for _ in range(3000)]
MIB = 1024 * 1024


def text(size):
    """Words in lines, as in code and in the output of tools."""
    words = DRAW.choices(WORDS, k=max(1, size // 7))
    return "\n    ".join(" ".join(words[at : at + 8]) for at in range(0, len(words), 8))


def history(size, each):
    """A conversation of so many bytes, whose tool results are this long."""
    said, total = [system(text(4000)), user(text(200))], 0
    while total < size:
        call = (f"call_{DRAW.getrandbits(96):024x}", "read", json.dumps({"path": text(30)}))
        said += [assistant(text(300), call), result(call[0], text(each))]
        total += each + 700
    return said


def encoded(messages):
    tools = [{"type": "function", "function": {"name": "read", "description": text(40)}}]
    return orjson.dumps({"model": "kimi-k3", "messages": messages, "stream": True, "tools": tools})


def cost(work):
    began = time.process_time()
    done = work()
    return time.process_time() - began, done


def ratio(each):
    """What a turn that extends a known conversation of 1 MiB costs, in terms of parsing it; and whether it was known."""
    talk = Talk()
    said = history(MIB, each)
    first = talk.raw(encoded(said))
    best = parsed = float("inf")
    labels = {label(first)}
    resolved = first
    for _ in range(9):
        call = (f"call_{DRAW.getrandbits(96):024x}", "read", "{}")
        answer = text(200)
        talk.answer(resolved, answer, call)
        said += [assistant(answer, call), result(call[0], text(500))]
        data = encoded(said)
        spent, resolved = cost(lambda data=data: talk.raw(data))
        best = min(best, spent)
        parsed = min(parsed, cost(lambda data=data: json.loads(data))[0])
        labels.add(label(resolved))
    assert len(labels) == 1
    return best / parsed


def test_a_turn_of_a_mebibyte_costs_a_third_of_parsing_it():
    """Whatever its messages' length: short ones, long ones, very long ones."""
    for each in (300, 3_000, 30_000):
        assert min(ratio(each) for _ in range(3)) <= 1 / 3, each


def test_a_clients_id_pays_next_to_nothing():
    """Beside a registry that looks at no content: a few microseconds."""
    data = encoded(history(2_000, 200))
    registries = {True: Talk().registry, False: Registry(limits(), SECRET, {}.get)}
    best = dict.fromkeys(registries, float("inf"))
    fields = [[(b"x-session-id", f"{number:032x}".encode())] for number in range(20)]
    for _ in range(300):
        for looks, registry in registries.items():
            facts = [body.read([data], len(data), False, registry.prefixes) for _ in fields]
            readings = [read_ids(each, None, fact) for each, fact in zip(fields, facts, strict=True)]
            began = time.process_time()
            for reading, fact in zip(readings, facts, strict=True):
                registry.done(registry.resolve(reading, "alice", GO, fact, 1000), 1000, True)
            best[looks] = min(best[looks], (time.process_time() - began) / len(fields))
    assert (best[True] - best[False]) * 1e6 < 10, best  # 3 us on a quiet machine


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="asks the Linux kernel for the memory in use")
@pytest.mark.parametrize(("most", "bound"), [pytest.param(10_000, 96, marks=pytest.mark.slow), (2_000, 64)])
def test_ten_thousand_conversations_keep_memory_bounded(most, bound):
    """Ten turns each: all of them whole; and at the default bound, most of them thin."""
    gc.collect()
    talk = Talk(max_count=most)
    before = resident()
    for number in range(10_000):
        said = [user(f"Conversation {number} asks about something that is its own.")]
        said += [assistant(f"The answer to {number}, which is long enough."), user(f"And then, in {number}?")] * 9
        talk.turn(said, f"The last answer to {number}, which is long enough, too.", after=1)
    gc.collect()
    used = (resident() - before) / MIB
    assert len(talk.evidence) == 10_000
    assert used < bound, used


def test_many_turns_of_a_mebibyte_at_once():
    """Each is one callback of the event loop: none holds up the others for long."""
    talk = Talk()
    said = history(MIB, 5_000)
    chats = []
    for number in range(30):
        mine = [said[0], user(f"{number}: {text(100)}"), *said[2:]]
        resolved = talk.raw(encoded(mine))
        answer = text(200)
        talk.answer(resolved, answer)
        chats.append((label(resolved), encoded([*mine, assistant(answer), user(text(100))])))
    for expected, data in chats:
        cpu, resolved = cost(lambda data=data: talk.raw(data))
        assert label(resolved) == expected
        assert cpu < 0.05  # 1.5 ms on a quiet machine


def test_small_bodies_cost_little_more_than_reading_them():
    """Two messages or four: tens of microseconds, reading included."""
    gc.disable()
    try:
        talk = Talk()
        first = [[system(text(500)), user(text(120))] for _ in range(400)]
        answers = [text(150) for _ in first]
        costs = {}
        asked = []
        for name, bodies in (
            ("new", [encoded(said) for said in first]),
            ("next", [encoded([*said, assistant(a), user("on")]) for said, a in zip(first, answers, strict=True)]),
        ):
            asked, best = [], float("inf")
            for start in range(0, len(bodies), 20):
                began = time.process_time()
                asked += [talk.raw(data) for data in bodies[start : start + 20]]
                best = min(best, (time.process_time() - began) / 20)
            costs[name] = best * 1e6
            for resolved, answer in zip(asked, answers, strict=True):
                talk.answer(resolved, answer)
        assert {resolved.match for resolved in asked} == {"answer"}
        assert max(costs.values()) < 200, costs  # 70 and 55 us, of which 9 are the reading, on a quiet machine
    finally:
        gc.enable()
