"""The reference of all settings, made from the sections: README's tables, the JSON Schema, a commented TOML file.

``python -m config.reference --write README.md`` rewrites what stands between the two markers.
"""

import json
import sys
from pathlib import Path
from typing import Any

from config.keys import KEYS, Key, Kind, sections
from config.settings import Settings
from config.variables import EXTENSION_KEYS
from config.view import shown

BEGIN = "<!-- settings:begin -->"
END = "<!-- settings:end -->"


def toml(value: Any) -> str:
    """A value as TOML spells it; JSON's spelling is the same for what settings hold, but for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _default(key: Key) -> str:
    return "" if key.default is None else f"`{toml(shown(key.default))}`"


def _range(key: Key) -> str:
    if key.kind is Kind.NUMBER:
        return f"{key.low}–{key.high}"  # noqa: RUF001 - a range
    return ", ".join(f"`{choice}`" for choice in key.choices)


def _row(key: Key) -> str:
    mark = " (restart)" if key.restart else ""
    cells = [f"`{key.field}`{mark}", _default(key), _range(key), key.description.replace("|", "\\|")]
    return "| " + " | ".join(cells) + " |"


def _sentence(doc: str | None) -> str:
    return " ".join((doc or "").split())


def markdown() -> str:
    """README's tables, without the markers."""
    lines: list[str] = []
    for name, model in sections().items():
        lines += [f"**`[{name}]`** {_sentence(model.__doc__)}", ""]
        lines += ["| key | default | range | meaning |", "|---|---|---|---|"]
        lines += [_row(key) for key in KEYS.values() if key.section == name]
        lines.append("")
    lines += [
        '**`[models."NAME"]`** Any key of `probe` and `quarantine`, for one model.',
        "",
        "A key marked (restart) is read when the daemon starts; all others follow the file and SIGHUP.",
        "",
        "The variables of pi-opencode-session-pool work too, with `PI_OCPOOL_` or `OCPOOL_` in front:",
        "",
        "| variable | key |",
        "|---|---|",
        '| `PI_OCPOOL` | `0` is `routing.mode = "off"` |',
        *(f"| `PI_OCPOOL_{suffix}` | `{name}` |" for suffix, name in EXTENSION_KEYS.items()),
        '| `PI_OCPOOL_DEBUG` | `1` is `log.level = "debug"` |',
        "| `PI_OCPOOL_STATE_PATH` | ignored, because the extension's state file is never shared |",
    ]
    return "\n".join(lines)


def schema() -> dict[str, Any]:
    """JSON Schema of the TOML file, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ocpool settings",
        **{name: part for name, part in Settings.model_json_schema(mode="validation").items() if name != "title"},
    }


def commented_toml() -> str:
    """A TOML file that sets nothing: every key with its default, commented out."""
    lines = ["# Settings of ocpool. Every key is commented out; remove the # in front of one to set it.", ""]
    for name, model in sections().items():
        lines += [f"# {_sentence(model.__doc__)}", f"[{name}]"]
        for key in (key for key in KEYS.values() if key.section == name):
            limits = f" ({_range(key).replace('`', '')})" if _range(key) else ""
            example = '""' if key.default is None else toml(shown(key.default))
            lines += [f"# {key.description[:-1]}{limits}.", f"# {key.field} = {example}"]
        lines.append("")
    lines += [
        "# Any key of probe and quarantine, for one model.",
        '# [models."kimi-k3"]',
        "# max_upstream_ms = 4000",
        "",
    ]
    return "\n".join(lines)


def between_markers(text: str) -> str | None:
    """What stands between the markers of a document, None if it has none."""
    _, begin, rest = text.partition(BEGIN)
    inner, end, _ = rest.partition(END)
    return inner.strip("\n") if begin and end else None


def rewritten(text: str) -> str:
    """The document with today's tables between its markers.

    Raises:
        ValueError: it has no markers.
    """
    if between_markers(text) is None:
        raise ValueError(f"has no lines {BEGIN} and {END}")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{markdown()}\n{END}{after}"


def main(arguments: list[str]) -> int:
    """``--write FILE`` rewrites the file; without it the tables go to stdout."""
    if arguments[:1] == ["--write"] and len(arguments) == 2:
        path = Path(arguments[1])
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    if arguments:
        sys.stderr.write("usage: python -m config.reference [--write FILE]\n")
        return 2
    sys.stdout.write(markdown() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
