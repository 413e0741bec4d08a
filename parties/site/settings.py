"""A site's own configuration: who may ask what of which table, and how much of it may be spent.

It is a TOML file that only its owner may read. Nothing of it comes from elsewhere, and a key that is not known is an error:
what is misspelt would be as if it were not there.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Unit
from federation.letters.keys import require_private
from parties.site.accounts import Account, Allowances
from parties.site.worker import Means

Missing = Literal["drop", "refuse"]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Connection(_Closed):
    """Where the mail box is: the SuperLink's HOST:PORT, the certificate authority that vouches for it, the own key."""

    superlink: Annotated[str, Field(pattern=r"^\S+:\d+$")]
    root: Path
    key: Path


class Source(_Closed):
    """What a column of the plan is called here, and what the plan calls its values."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    column: str = Field(alias="from")
    values: dict[str, str] = Field(default_factory=dict, alias="map")


class Table(_Closed):
    """Where the rows are: a CSV, Parquet or npz `file`, or a `query` of the data base at `url`.

    `table` is what its owner calls it, for ever: what is spent is spent by the table of this name. `columns` maps the
    plan's names to those here, where they differ. Rows with missing values are left out ("drop") or keep the site from
    being ready ("refuse"), or get a value each column's own.
    """

    table: Annotated[str, Field(min_length=1, max_length=200)]
    file: Path | None = None
    query: str | None = None
    url: str | None = None
    columns: dict[str, str | Source] = Field(default_factory=dict)
    missing: Missing | dict[str, float | str] = "refuse"
    rows_per_person: Annotated[int, Field(ge=0)] = 0
    person: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Table:
        if (self.file is None) == (self.query is None) or (self.query is None) != (self.url is None):
            raise ValueError("name a file, or a query and the url of its data base")
        return self


class Policy(_Closed):
    """Which aggregators may ask, by the fingerprints of their keys, for which protocols, and who approves.

    `approve` is "plan" (somebody approves a plan once), "each" (every exchange of it) or "auto" (nobody need).
    """

    aggregators: Annotated[tuple[Annotated[str, Field(pattern=r"^[0-9a-f]{16,64}$")], ...], Field(min_length=1)]
    protocols: tuple[str, ...] = ()
    approve: Literal["plan", "each", "auto"] = "plan"
    public_features: bool = Field(default=False, alias="public-features")
    most_questions: Annotated[int, Field(ge=1)] = Field(default=200, alias="most-questions")


class Amount(_Closed):
    """What releases may cost one unit of the table in all."""

    epsilon: Annotated[float, Field(ge=0)]
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    adjacency: Adjacency = Adjacency.REPLACE


class Trusted(Amount):
    """The same for releases that an aggregator protects, and how many answers without noise may leave."""

    answers: Annotated[int, Field(ge=1)] = 1
    unit: Unit = Unit.PARTY


class Bounds(_Closed):
    """What a question may use: bytes of memory, seconds, and bytes of itself and of its answer."""

    memory: Annotated[int, Field(ge=2**28)] = 3 * 2**30
    seconds: Annotated[int, Field(ge=1, le=3600)] = 90
    letter: Annotated[int, Field(ge=2**16)] = 2**26


class Settings(_Closed):
    """All of it; relative paths are those of the folder of the file."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    plan: Path
    state: Path
    connection: Connection
    data: Table
    policy: Policy
    allowance: dict[Literal["label", "row", "person", "party", "trusted"], dict[str, Any]]
    limits: Bounds = Bounds()

    @property
    def allowances(self) -> Allowances:
        """What may be spent, account by account."""
        amounts = {name: Amount(**told) for name, told in self.allowance.items() if name != "trusted"}
        proved = tuple(Account(Unit(name), one.adjacency, one.epsilon, one.delta) for name, one in amounts.items())
        trusted = Trusted(**self.allowance["trusted"]) if "trusted" in self.allowance else None
        return Allowances(
            proved,
            trusted and Account(trusted.unit, trusted.adjacency, trusted.epsilon, trusted.delta),
            trusted.answers if trusted else 0,
            self.data.rows_per_person,
            self.policy.public_features,
        )

    @property
    def means(self) -> Means:
        """What a question may use."""
        return Means(self.limits.memory, self.limits.seconds)

    @classmethod
    def load(cls, path: Path) -> Settings:
        """From a file. Raises `InputError` that names the file, the key and what is allowed there."""
        require_private(path)
        try:
            return cls.model_validate(_placed(tomllib.loads(path.read_text(encoding="utf-8")), path.parent))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: {error}") from error
        except ValidationError as error:
            raise InputError("\n".join(f"{path}: {_told(cls, found)}" for found in error.errors())) from error
