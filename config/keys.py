"""Every key by its name, read off the sections: what refusals, the environment, the reference and reloads share."""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from config.sections.base import Section
from config.settings import Settings
from config.units import Unit

MODELS = "models"
MODEL_SECTIONS = ("probe", "quarantine")


class Kind(Enum):
    """How the text of a command line or a variable is read."""

    NUMBER = "a whole number"
    SWITCH = "true or false"
    TEXT = "text"
    CHOICE = "one of"
    LIST = "a list"
    TABLE = "a table"


class Key(NamedTuple):
    """One setting as its section declares it."""

    section: str
    field: str
    kind: Kind
    secret: bool
    choices: tuple[str, ...]
    low: int | None
    high: int | None
    noun: str  # what a number counts: "milliseconds", "bytes", "tokens" or ""
    restart: bool
    description: str
    default: Any

    @property
    def name(self) -> str:
        """As it is written in refusals and after ``--set``: ``pool.size``."""
        return f"{self.section}.{self.field}"

    @property
    def variable(self) -> str:
        """The environment's name for it: ``OCPOOL_POOL__SIZE``."""
        return f"OCPOOL_{self.section.upper()}__{self.field.upper()}"

    @property
    def expects(self) -> str:
        """What a value must be, with its range, in the words of a refusal."""
        if self.kind is Kind.NUMBER:
            of = f" of {self.noun}" if self.noun else ""
            return f"must be a whole number{of} from {self.low} to {self.high}"
        if self.choices:
            return f"must be {'one' if self.kind is Kind.CHOICE else 'a list'} of {', '.join(self.choices)}"
        return f"must be {self.kind.value}"


def _alternatives(annotation: Any) -> Iterator[Any]:
    """The types a value may have: unions opened, annotations and None taken off."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif origin in {None, Literal, tuple, dict}:
        if annotation is not type(None):
            yield annotation
    else:
        for part in get_args(annotation):
            yield from _alternatives(part)


def _kind(annotation: Any) -> tuple[Kind, bool, tuple[str, ...]]:
    """How text is read for a type, whether it is secret, and which words it allows."""
    (plain,) = _alternatives(annotation)
    origin = get_origin(plain)
    if origin is Literal:
        return Kind.CHOICE, False, get_args(plain)
    if origin is tuple:
        return Kind.LIST, False, _kind(get_args(plain)[0])[2]
    if origin is dict:
        return Kind.TABLE, _kind(get_args(plain)[1])[1], ()
    kinds = {int: Kind.NUMBER, bool: Kind.SWITCH, str: Kind.TEXT, Path: Kind.TEXT, SecretStr: Kind.TEXT}
    return kinds.get(plain, Kind.TABLE), plain is SecretStr, ()


def _key(section: str, field: str, info: FieldInfo) -> Key:
    kind, secret, choices = _kind(info.annotation)
    marks = info.metadata
    return Key(
        section=section,
        field=field,
        kind=kind,
        secret=secret,
        choices=choices,
        low=next((int(str(m.ge)) for m in marks if isinstance(m, Ge)), None),
        high=next((int(str(m.le)) for m in marks if isinstance(m, Le)), None),
        noun=next((m.noun for m in marks if isinstance(m, Unit)), ""),
        restart=bool(isinstance(info.json_schema_extra, dict) and info.json_schema_extra.get("x-restart")),
        description=info.description or "",
        default=info.get_default(call_default_factory=True, validated_data={}),
    )


def sections() -> dict[str, type[Section]]:
    """The sections by name, in the order of the reference; without ``models``."""
    return {
        name: info.annotation
        for name, info in Settings.model_fields.items()
        if isinstance(info.annotation, type) and issubclass(info.annotation, Section)
    }


def _table() -> dict[str, Key]:
    keys = (
        _key(section, field, info)
        for section, model in sections().items()
        for field, info in model.model_fields.items()
    )
    return {key.name: key for key in keys}


KEYS: Mapping[str, Key] = _table()
MODEL_KEYS: Mapping[str, Key] = {key.field: key for key in KEYS.values() if key.section in MODEL_SECTIONS}


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like ``name``; one with the same last part, if there is one."""
    import difflib  # noqa: PLC0415 - only a refusal needs it

    candidates = list(known)
    last = name.rpartition(".")[2]
    same = [candidate for candidate in candidates if last and candidate.rpartition(".")[2] == last]
    return difflib.get_close_matches(name, same or candidates, n=1, cutoff=0.0)[0]


def find(path: tuple[str, ...]) -> Key | None:
    """The key that a path such as ("pool", "size") or ("models", "kimi-k3", "timeout_ms") leads to."""
    match path:
        case ("models", _, field):
            return MODEL_KEYS.get(field)
        case (section, field):
            return KEYS.get(f"{section}.{field}")
        case _:
            return None


def spell(path: tuple[str, ...]) -> str:
    """A path as a user writes it; the name of a model is quoted."""
    match path:
        case ("models", name, *rest):
            return ".".join([f'{MODELS}."{name}"', *rest])
        case _:
            return ".".join(path)


def unknown(path: tuple[str, ...]) -> str:
    """The refusal of a path that leads nowhere."""
    name = spell(path)
    if path[:1] == (MODELS,) and len(path) > 2:
        last = nearest(path[-1], MODEL_KEYS)
        return f"{name}: no such setting; the nearest is {spell((*path[:2], last))}"
    return f"{name}: no such setting; the nearest is {nearest('.'.join(path), KEYS)}"
