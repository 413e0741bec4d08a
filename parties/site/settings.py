"""The configuration of a site: who may send which query to which table, the budget, and the site's trust assumptions.

The configuration is a TOML file that only its owner may read. No value comes from elsewhere. An unknown key is an
error, because a misspelt key would otherwise have no effect.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from federation.contract.errors import InputError, nearest_name
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.trust import COLLUDING, Servers
from federation.secure_aggregation.plan import SAID, SumTerms
from federation.signed_messages.aggregation_messages import masks_for, roster_of
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import require_private
from parties.site.accounts import Account, Allowances
from parties.site.worker import Means

MARGIN = 2  # seconds of a question's time that are kept for sealing and storing its answer

_ROLE = "role"  # a key that the configuration of a second server has
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SQLITE = "sqlite:///"
_LONGEST_SHOWN = 60  # characters of a value that was refused


def _size(value: Any) -> Any:
    """Bytes of a size as people write it."""
    if isinstance(value, str):
        found = re.fullmatch(r"(\d{1,9}) ?(KiB|MiB|GiB)", value)
        if not found:
            raise _rule('must be a number of bytes, or one with its unit such as "3GiB"')
        return int(found[1]) * _UNITS[found[2]]
    return value


def _rule(text: str) -> PydanticCustomError:
    return PydanticCustomError("rule", "{text}", {"text": text})


Text = Annotated[str, Field(min_length=1, max_length=200)]
Size = Annotated[int, BeforeValidator(_size)]
Digits = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Fingerprints = Annotated[tuple[Digits, ...], Field(min_length=1)]


class _Closed(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        strict=True,
        alias_generator=lambda name: name.replace("_", "-"),
        populate_by_name=True,
    )


class Connection(_Closed):
    """The own key; and where the mail box is, if elsewhere than the plan says: HOST:PORT, and who vouches for it."""

    key: Path
    superlink: Annotated[str, Field(pattern=r"^\S+:\d+$")] | None = None
    root: Path | None = None


class Source(_Closed):
    """What a column of the plan is called here, and what the plan calls its values."""

    column: str = Field(alias="from")
    values: dict[str, str] = Field(default_factory=dict, alias="map")


class Table(_Closed):
    """Where the rows are: a `file`, or one SELECT, the `query` of the data base at `url`.

    `table` is what its owner calls it, for ever: what is spent is spent by the table of this name. `columns` maps the
    plan's names to those here, where they differ. Rows without a value that can be read are left out ("drop") or keep
    the site from being ready ("refuse"), or get a value each column's own. `rows_per_person` says that no person has
    more rows than that; 0 says nothing.
    """

    table: Text
    file: Path | None = None
    query: str | None = None
    url: str | None = None
    columns: dict[str, str | Source] = Field(default_factory=dict)
    missing: Literal["drop", "refuse"] | dict[str, float | str] | None = None
    rows_per_person: Annotated[int, Field(ge=0, le=10**6)] = 0

    @model_validator(mode="after")
    def _one_source(self) -> "Table":
        if (self.file is None) == (self.query is None) or (self.query is None) != (self.url is None):
            raise _rule("must name a file, or a query and the url of its data base")
        return self


@dataclass(frozen=True)
class Belief:
    """`colluding` is the largest share of the sites that may collude with whoever asks: secure sums must hide this
    site's part from them all. `servers` are the kinds of servers that may add up, and `seconds` the keys of second
    servers, as hexadecimal digits, that are known to be those of somebody else than the coordinator.
    """

    colluding: float = COLLUDING
    servers: tuple[Servers, ...] = ("one",)
    seconds: tuple[str, ...] = ()

    def objections(self, agreement: Agreement) -> Iterator[str]:
        """Why the servers of a plan's secure sums are not believed, in sentences; nothing where they are."""
        if agreement.servers not in self.servers:
            allowed = ", ".join(f'"{one}"' for one in self.servers)
            yield (
                f"the plan's secure sums are added up by {SAID[agreement.servers]}{_RISK[agreement.servers]}; "
                f'policy.servers allows {allowed}: write "{agreement.servers}" there, too, if this site believes that, '
                "or do not serve this plan"
            )
        second = agreement.second
        if second is not None and second.masks and second.masks not in self.seconds:
            name = second.name
            yield (
                f"the plan's second server '{name}' has the key {second.masks}, which is not in "
                f"policy.second-servers; compare it by telephone with '{name}', not with the coordinator, and write it "
                "there if it is theirs"
            )

    def terms(self, agreement: Agreement) -> SumTerms:
        """What this site insists on in every sum of a plan, if its servers are believed.

        Raises `InputError` where the plan lacks keys of sites.
        """
        trust = replace(agreement.terms, colluding=self.colluding)
        return SumTerms(roster_of(agreement), trust, masks_for(agreement))

    def require(self, agreement: Agreement) -> None:
        """Raises `InputError` for servers that are not believed."""
        if why := next(self.objections(agreement), ""):
            raise InputError(why)


class Policy(_Closed):
    """Which aggregators may ask, by the fingerprints of their keys, for which protocols, and who approves.

    `approve` is "plan" (somebody approves a plan once), "each" (every exchange of it) or "auto" (nobody need).
    `most_questions` may be answered in an exchange, and in a day, of a table of `least_rows` or more. `colluding`
    is the largest share of the sites that may collude with an aggregator: a secure sum must hide this site's part from
    all of them together; `servers` are the kinds that may add it up, `second_servers` the keys of those who may take
    masks off.
    """

    aggregators: Fingerprints
    protocols: Annotated[tuple[str, ...], Field(min_length=1)]
    approve: Literal["each", "plan", "auto"] = "plan"
    public_features: bool = False
    most_questions: Annotated[int, Field(ge=1)] = 200
    least_rows: Annotated[int, Field(ge=1)] = 1
    colluding: Annotated[float, Field(ge=0, lt=1)] = COLLUDING
    servers: Annotated[tuple[Servers, ...], Field(min_length=1)] = ("one",)
    second_servers: tuple[Digits, ...] = ()

    @property
    def belief(self) -> Belief:
        """The trust assumptions about the servers of secure sums."""
        return Belief(self.colluding, self.servers, self.second_servers)


class Amount(_Closed):
    """What releases may cost one unit of the table in all."""

    epsilon: Annotated[float, Field(ge=0)]
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    adjacency: Adjacency = Adjacency.REPLACE


class Trusted(Amount):
    """The same for releases that an aggregator protects, and how many answers without noise may leave."""

    answers: Annotated[int, Field(ge=1)] = 1
    unit: Unit = Unit.PARTY


class Allowance(_Closed):
    """An account for each unit whose releases this site protects, and one for those that an aggregator does."""

    label: Amount | None = None
    row: Amount | None = None
    person: Amount | None = None
    party: Amount | None = None
    trusted: Trusted | None = None

    @model_validator(mode="after")
    def _something(self) -> "Allowance":
        if all(getattr(self, name) is None for name in type(self).model_fields):
            units = ", ".join(Allowance.model_fields)
            raise _rule(f"must have a section such as [allowance.label], for one of {units}")
        return self


class Bounds(_Closed):
    """What a question may use: bytes of memory, and seconds, after which its answer leaves; bytes of a `letter`."""

    memory: Annotated[Size, Field(ge=2**30, le=2**50)] = 3 * 2**30
    seconds: Annotated[int, Field(ge=8, le=3600)] = 30
    letter: Annotated[Size, Field(ge=2**16, le=2**30)] = 2**26


class SecondPolicy(_Closed):
    """Whose sums a second server takes masks off, by the fingerprints of their keys; the rest as in `Policy`."""

    aggregators: Fingerprints
    approve: Literal["each", "plan", "auto"] = "plan"
    colluding: Annotated[float, Field(ge=0, lt=1)] = COLLUDING


class Configuration(_Closed):
    """What the configurations of all members of a plan have; relative paths are those of the folder of the file."""

    name: Text
    plan: Path
    state: Path
    connection: Connection

    @classmethod
    def load(cls, path: Path) -> Self:
        """From a file. Raises `InputError` that names the file, the key and what is allowed there."""
        plain = _plain(path)
        if (_ROLE in plain) is (cls is Settings):
            raise InputError(
                f"{path} is the configuration of a second server, which holds no rows and spends nothing"
                if cls is Settings
                else f"{path} is the configuration of a site; that of a second server begins with {_ROLE}"
            )
        try:
            found = cls.model_validate_json(json.dumps(plain, default=str))
        except ValidationError as error:
            told = dict.fromkeys(filter(None, (_told(one, cls) for one in error.errors(include_url=False))))
            raise InputError("\n".join(f"{path}: {sentence}" for sentence in told)) from error
        return found._placed(path.absolute().parent)

    def _placed(self, folder: Path, **changed: Any) -> Self:
        """The same with paths from the root on."""
        connection = self.connection
        known = {"key": placed(folder, connection.key), "root": connection.root and placed(folder, connection.root)}
        whole = {"plan": placed(folder, self.plan), "state": placed(folder, self.state), **changed}
        return self.model_copy(update={**whole, "connection": connection.model_copy(update=known)})


class SecondSettings(Configuration):
    """The configuration of the second of two servers, which holds no rows and spends nothing."""

    role: Literal["second-server"]
    policy: SecondPolicy


class Settings(Configuration):
    """The configuration of a site."""

    data: Table
    policy: Policy
    allowance: Allowance
    limits: Bounds = Bounds()

    @property
    def allowances(self) -> Allowances:
        """What may be spent, account by account."""
        amounts = {unit: getattr(self.allowance, unit) for unit in (Unit.LABEL, Unit.ROW, Unit.PERSON, Unit.PARTY)}
        trusted = self.allowance.trusted
        return Allowances(
            tuple(Account(unit, one.adjacency, one.epsilon, one.delta) for unit, one in amounts.items() if one),
            Account(trusted.unit, trusted.adjacency, trusted.epsilon, trusted.delta) if trusted else None,
            trusted.answers if trusted else 0,
            self.data.rows_per_person,
            self.policy.public_features,
        )

    @property
    def means(self) -> Means:
        """What a question may use: its answer, and one for blank rows where that fails, are there when it leaves."""
        return Means(self.limits.memory, (self.limits.seconds - MARGIN) // 2)

    def _placed(self, folder: Path, **changed: Any) -> Self:
        data, url = self.data, self.data.url
        if url is not None and url.startswith(_SQLITE) and url not in (_SQLITE, f"{_SQLITE}:memory:"):
            url = f"{_SQLITE}{placed(folder, Path(url.removeprefix(_SQLITE)))}"
        known = {"file": data.file and placed(folder, data.file), "url": url}
        return super()._placed(folder, data=data.model_copy(update=known))


_WORDS = {
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "string_type": "must be a text, between quotation marks",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list, between [ and ]",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
}


def configuration(path: Path) -> Settings | SecondSettings:
    """Load the configuration of a site, or of a helper server. Raises as `Configuration.load`."""
    return SecondSettings.load(path) if _ROLE in _plain(path) else Settings.load(path)


def _plain(path: Path) -> dict[str, Any]:
    if path.is_dir():
        raise InputError(f"{path} is a folder; name the file in it: {path / 'site.toml'}")
    require_private(path)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML: {error}") from error


def placed(folder: Path, path: Path) -> Path:
    """A path of a file in a folder, from the root on."""
    return Path(os.path.normpath(folder / path))


def _told(detail: ErrorDetails, root: type[Configuration]) -> str | None:
    """One sentence: the key, what is allowed there, and what came; None for what another one tells better."""
    place = [key for key in detail["loc"] if key not in _ALTERNATIVES]
    named = ".".join(map(str, place))
    kind, context, came = detail["type"], detail.get("ctx", {}), detail["input"]
    if kind == "extra_forbidden":
        known = _keys(place[:-1], root)
        return f"'{named}' is not known; allowed there: {', '.join(known)}{nearest_name(str(place[-1]), known)}"
    if kind == "missing":
        return f"'{named}' is missing; it has no default"
    if len(place) < len(detail["loc"]) and kind != "rule":
        return None if isinstance(came, dict) else f"'{named}' must be {_EITHER[str(place[1])]}, got {_shown(came)}"
    if kind in ("model_type", "dict_type"):
        return f"'{named}' must be a section [{named}] with {', '.join(_keys(place, root))}, got {_shown(came)}"
    if kind in ("literal_error", "enum"):
        allowed = re.findall(r"'([^']*)'", context["expected"])
        return f"'{named}' must be one of {', '.join(allowed)}, got {_shown(came)}{nearest_name(str(came), allowed)}"
    if kind == "string_pattern_mismatch":
        return f"'{named}' must be {_FORMS[str(context['pattern'])]}, got {_shown(came)}"
    if kind == "too_short" and came:  # what is in it is wrong, and told
        return None
    got = "" if isinstance(came, dict) else f", got {_shown(came)}"
    return f"'{named}' {_WORDS.get(kind, detail['msg']).format(**context)}{got}"


_FORMS = {
    r"^\S+:\d+$": "HOST:PORT",
    r"^[0-9a-f]{64}$": "a fingerprint of 64 hexadecimal digits, as the aggregator's coordinator reads it out",
}
# How pydantic tells apart what may stand in one place, and what that is.
_ALTERNATIVES = ("str", "Source", "literal['drop','refuse']", "dict[str,union[float,str]]", "float")
_EITHER = {
    "missing": '"drop", "refuse", or a section [data.missing] with COLUMN = VALUE',
    "columns": "the name of a column here, or {from = NAME, map = {VALUE-HERE = VALUE-OF-THE-PLAN}}",
}


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def _keys(place: list[Any], root: type[BaseModel]) -> list[str]:
    """The keys of the section at a place, as the file writes them."""
    section: type[BaseModel] | None = root
    for key in place:
        fields = {} if section is None else {field.alias: field.annotation for field in section.model_fields.values()}
        found = fields.get(str(key))
        models = [one for one in (found, *get_args(found)) if isinstance(one, type) and issubclass(one, BaseModel)]
        section = models[0] if models else (Source if key == "columns" else section)
    return [] if section is None else [str(field.alias) for field in section.model_fields.values()]


_RISK: dict[Servers, str] = {
    "one": "",
    "one_semi_honest": ": a coordinator that cheats in the sum could read this site's part",
    "two": ": the coordinator and the second server could together read this site's part",
}
