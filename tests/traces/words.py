"""What users ask and models say, drawn from a seed: never the same long text twice, often the same short one."""

import json
from functools import lru_cache
from random import Random
from typing import Any

from tests.traces.play import Call

_THINGS = (
    "upload client", "retry loop", "token bucket", "session store", "config loader", "event log", "search index",
    "login form", "invoice export", "date parser", "queue worker", "cache layer", "route table", "metrics page",
    "tenant filter", "image resizer", "webhook receiver", "permission check", "rate limiter", "CSV importer",
)  # fmt: skip
_FILES = (
    "src/upload.py", "lib/retry.ts", "internal/bucket.go", "app/session.rb", "src/config/load.rs", "web/events.tsx",
    "pkg/search/index.go", "ui/Login.vue", "billing/export.py", "core/dates.py", "jobs/worker.py", "src/größe.py",
    "server/routes.ts", "api/hooks.py", "tests/test_upload.py", "docs/setup.md", "Makefile", "schema.sql",
)  # fmt: skip
_VERBS = (
    "drops", "doubles", "forgets", "delays", "reorders", "swallows", "logs", "rounds", "truncates", "caches",
    "re-reads", "locks", "skips", "escapes", "rejects",
)  # fmt: skip
_WHATS = (
    "the last entry", "an empty header", "requests after a restart", "the second page", "time zones", "a unicode name",
    "the error of the first try", "negative amounts", "a trailing slash", "parallel writes", "an expired token",
    "the user's choice", "very long lines", "a missing file",
)  # fmt: skip
_WHENS = (
    "when two workers start at once", "under load", "on the first of a month", "if the cache is cold", "on Windows",
    "with an empty database", "after the third retry", "behind a proxy", "in the nightly run", "without a network",
    "for a user who has no role", "whenever the clock steps back",
)  # fmt: skip
_FINDS = (
    "I looked at {file} and the {thing} {verb} {what} {when}.",
    "The cause is in `{file}`: line {n} {verb} {what}, and nothing checks for it {when}.",
    "The {thing} should not decide this; the caller already knows {what}.",
    "I changed `{file}` so that the {thing} keeps {what} {when}, {n} lines in all.",
    "Running the tests again shows {n} passed; the one that failed covered {what}.",
    "There is a second place, `{file}`, that {verb} {what} in the same way.",
    "Nothing else in the repository depends on how the {thing} {verb} {what}.",
    "If you want, I can also cover the case {when} with a test in `{file}`.",
    "The {thing} now returns early, which makes {n} of the branches below unreachable {when}.",
)
_TASKS = (
    "The {thing} in {file} {verb} {what} {when}. Find out why and fix it.",
    "Add a test for the {thing}: it {verb} {what} {when}.",
    "Please refactor {file}; the {thing} has grown and {verb} {what}. Keep the public names.",
    "Write a short design for a new {thing} that never {verb} {what}.",
    "Why does the {thing} {verb_} {what} {when}? See {file} around line {n}.",
    "Rename the {thing} in {file} and everything that uses it; then run the tests.",
)
_FOLLOWS = (
    "Good. Now do the same for {file}.",
    "And what happens {when}?",
    "That broke the {thing}, look at line {n} of {file}.",
    "Please also explain why it {verb} {what}.",
    "Undo the last change to {file} and try something smaller.",
    "Can you make the {thing} faster {when}?",
    "The test still fails with {n} errors.",
)
SHORT_FOLLOWS = ("continue", "yes", "go on", "ok, do it", "thanks, next", "try again")
SHORT_ANSWERS = ("Done.", "Done. All tests pass.", "Fixed.", "OK.", "I have updated the file.", "All tests pass now.")
SHORT_STEPS = ("", "", "Let me look at the file.", "Now the tests.", "I'll check where this is used.")
GREETINGS = ("hi", "hello", "hey there", "test")
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TOOL_ARGUMENTS: dict[str, Any] = {
    "read": lambda r: {"path": r.choice(_FILES), "offset": r.randrange(400), "limit": 80},
    "edit": lambda r: {"path": r.choice(_FILES), "old": sentence(r), "new": sentence(r)},
    "bash": lambda r: {
        "command": f"pytest -q {r.choice(_FILES)} -k {r.choice(_VERBS)}",
        "timeout": r.randrange(9) * 1000,
    },
    "search": lambda r: {"pattern": f"{r.choice(_VERBS)}.*{r.randrange(100)}", "path": "src"},
    "task": lambda r: {"description": r.choice(_THINGS), "prompt": sentence(r)},
}


def _fill(rng: Random, pattern: str) -> str:
    verb = rng.choice(_VERBS)
    return pattern.format(
        thing=rng.choice(_THINGS),
        file=rng.choice(_FILES),
        verb=verb,
        verb_=verb.rstrip("s"),
        what=rng.choice(_WHATS),
        when=rng.choice(_WHENS),
        n=rng.randrange(3, 900),
    )


def sentence(rng: Random) -> str:
    return _fill(rng, rng.choice(_FINDS))


def prose(rng: Random, characters: int) -> str:
    """At least so many characters, in paragraphs, with a list or some code now and then."""
    parts: list[str] = []
    while sum(map(len, parts)) < characters:
        form = rng.random()
        if form < 0.7:
            parts.append(" ".join(sentence(rng) for _ in range(rng.randrange(1, 4))))
        elif form < 0.85:
            parts.append("\n".join(f"- {sentence(rng)}" for _ in range(3)))
        else:
            parts.append(
                f"```python\ndef {rng.choice(_VERBS).replace('-', '_')}_{rng.randrange(999)}(x):\n    return x + {rng.randrange(99)}\n```"
            )
    return "\n\n".join(parts)


@lru_cache(maxsize=256)
def fixed(seed: str, characters: int) -> str:
    """Prose that a program always sends, such as its system prompt."""
    return prose(Random(seed), characters)


def task(rng: Random) -> str:
    """What a user opens with."""
    return _fill(rng, rng.choice(_TASKS))


def follow(rng: Random) -> str:
    """What a user says next; one time in five something that everybody says."""
    return rng.choice(SHORT_FOLLOWS) if rng.random() < 0.2 else _fill(rng, rng.choice(_FOLLOWS))


def answer(rng: Random) -> str:
    """A model's last word of a turn; one time in eight one that it says often."""
    return rng.choice(SHORT_ANSWERS) if rng.random() < 0.12 else prose(rng, rng.randrange(120, 900))


def step(rng: Random) -> str:
    """What a model says beside a tool call: often nothing."""
    return sentence(rng) if rng.random() < 0.4 else rng.choice(SHORT_STEPS)


def output(rng: Random) -> str:
    """What a tool brought back."""
    return "\n".join(f"{number}: {sentence(rng)}" for number in range(rng.randrange(2, 14)))


def arguments(rng: Random, tool: str) -> str:
    """A tool's arguments in one of the spellings that models have."""
    made = _TOOL_ARGUMENTS[tool](rng)
    return json.dumps(made, ensure_ascii=rng.random() < 0.5, separators=rng.choice(((",", ":"), (", ", ": "))))


def base62(rng: Random, count: int) -> str:
    return "".join(rng.choice(_BASE62) for _ in range(count))


def digits(rng: Random, count: int) -> str:
    return "".join(rng.choice("0123456789abcdef") for _ in range(count))


def uuid(rng: Random) -> str:
    text = digits(rng, 32)
    return f"{text[:8]}-{text[8:12]}-7{text[13:16]}-a{text[17:20]}-{text[20:]}"


class CallIds:
    """How an endpoint names tool calls: at random, or by counting (Kimi)."""

    def __init__(self, style: str) -> None:
        self.style = style
        self._count = 0

    def call(self, rng: Random, tool: str) -> Call:
        made = self._id(rng, tool)
        self._count += 1
        return Call(made, tool, arguments(rng, tool))

    def _id(self, rng: Random, tool: str) -> str:
        match self.style:
            case "openai":
                return f"call_{base62(rng, 24)}"
            case "vllm":
                return f"chatcmpl-tool-{digits(rng, 32)}"
            case "anthropic":
                return f"toolu_01{base62(rng, 22)}"
            case "kimi-k2":
                return f"functions.{tool}:{self._count}"
            case "kimi-k3":
                return f"{tool}_{self._count}"
            case "counter":
                return f"call{self._count:05d}"
        raise AssertionError(self.style)
