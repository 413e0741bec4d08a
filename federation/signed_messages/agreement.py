"""The agreement of an aggregator and its sites before any query: the public part of a plan, known by its digest.

A site approves a digest. A plan that differs by one letter is another plan, which the site has not approved.
"""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from federation.contract.errors import InputError, nearest_name
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.contract.query import Question
from federation.contract.randomness import digest
from federation.contract.trust import Servers, TrustTerms
from federation.engines.codec import declared_parts, parts_of
from federation.signed_messages.keys import ed25519_key_from_text, fingerprint, site_key_from_text

LAST_SECOND = 253_402_300_799  # since 1970, of the year 9999: no calendar goes further

_SHARES = 2**10  # bytes for each site of what others of a secure sum send to one another, and the server to each

Name = Annotated[str, Field(min_length=1, max_length=200)]
SiteName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$")]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class Column(_Closed):
    """A column of features in the table of every site: a number, or a text."""

    name: Name
    text: bool = False


class Label(_Closed):
    """What is learned: one of some classes, or a number in a range."""

    name: Name
    classes: tuple[str, ...] = ()
    range: tuple[float, float] | None = None


class Bags(_Closed):
    """The column that says in which bag of its site a row is, and how many bags a site has at most."""

    column: Name
    most: Annotated[int, Field(ge=1)]


class Public(_Closed):
    """The public rows, which come as a file: its name, SHA-256 in hexadecimal digits, and number of rows."""

    file: Name
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    rows: Annotated[int, Field(ge=1)]


class Asked(_Closed):
    """A question that will be asked: its kind, how often at most, and all of it that no answer changes.

    `same` has its plain values by dotted name, and of its arrays digests. `masked` says that answers are added up by a
    secure sum, and leave a site in no other way. `length` is how many bytes a question of the kind has at most, and
    `reply` how many a site sends at most for an answer.
    """

    kind: Name
    times: Annotated[int, Field(ge=1, le=10_000)]
    same: dict[str, Any]
    length: Annotated[int, Field(ge=1)]
    reply: Annotated[int, Field(ge=1)]
    masked: bool = False


class Promise(_Closed):
    """What all answers of one site are worth together; `trusted` where the aggregator adds the noise."""

    unit: Unit
    adjacency: Adjacency
    epsilon: Annotated[float, Field(gt=0)]
    delta: Annotated[float, Field(ge=0, lt=1)]
    trusted: bool


class Member(_Closed):
    """A site: its name and its public keys, as OpenSSH writes them; empty in an invitation.

    By `key` the coordinator knows it, by `sums` the other sites do in secure sums.
    """

    name: SiteName
    key: str = ""
    sums: str = ""


class Second(_Closed):
    """The second of two servers: its name, its public key as a site's, and the X25519 key that sites mask their parts
    for, as hexadecimal digits. The keys are empty in an invitation.
    """

    name: SiteName
    key: str = ""
    masks: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""


class Agreement(_Closed):
    """All that a site must know to decide; without the keys of sites, an invitation to it.

    `aggregator` is the public key that questions are signed with, `superlink` the HOST:PORT through which they come and
    `root` the certificate (PEM) that vouches for it. `closing` is in seconds since 1970. Cells of features may be
    `missing`. `person` is the column that says whose row it is, of whom each counts in `rows_per_person` bags at most,
    `rows` the fewest and most rows of a bag. `quorum` is the least fraction of the sites that must answer, `colluding`
    the largest that may tell whoever sees a secure sum what they sent, `servers` who adds it up: where there are two,
    `second` is the one that is not the aggregator. The same questions may be `asked` in any number of exchanges, as far
    as each site's allowance lasts. `public_features` says that labels alone are protected there.
    """

    version: Literal[1]
    name: Name
    aggregator: str
    superlink: Annotated[str, Field(pattern=r"^\S+:\d+$")]
    root: str
    sites: Annotated[tuple[Member, ...], Field(min_length=1, max_length=10_000)]
    closing: Annotated[int, Field(ge=0, le=LAST_SECOND)]
    columns: Annotated[tuple[Column, ...], Field(min_length=1)]
    label: Label
    missing: bool
    bags: Bags | None = None
    person: Name | None = None
    rows_per_person: Annotated[int, Field(ge=0)] = 0
    rows: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]]
    public: Public
    quorum: Annotated[float, Field(gt=0, le=1)]
    colluding: Annotated[float, Field(ge=0, lt=1)]
    servers: Servers = "one"
    second: Second | None = None
    protocol: str
    options: dict[str, Any]
    asked: Annotated[tuple[Asked, ...], Field(min_length=1)]
    promises: Annotated[tuple[Promise, ...], Field(min_length=1)]
    public_features: bool = False

    @model_validator(mode="after")
    def _keys_differ(self) -> "Agreement":
        if (self.servers == "two") is not (self.second is not None):
            raise PydanticCustomError("second", "a second server is named where there are two servers, and only there")
        found = [fingerprint(key) for key in self.keys] if self.sealed else [one.name for one in self.members]
        names = [one.name.lower() for one in self.members]
        sums = [site.sums or site.name for site in self.sites]
        for what, known in (("name", names), ("key", found), ("key for secure sums", sums)):
            places: dict[str, int] = {}
            for place, one in enumerate(known):
                if (first := places.setdefault(one, place)) < place:
                    both = {"one": self.members[first].name, "other": self.members[place].name, "what": what}
                    raise PydanticCustomError(
                        "twice", "the sites '{one}' and '{other}' have the same {what}; each makes its own", both
                    )
        return self

    @property
    def terms(self) -> TrustTerms:
        """What is declared about its sites and servers."""
        return TrustTerms(len(self.sites), self.quorum, self.colluding, self.servers)

    @property
    def members(self) -> tuple[Member | Second, ...]:
        """All who are asked, by their positions: the sites, and after them the second server where there is one."""
        return self.sites if self.second is None else (*self.sites, self.second)

    @property
    def sealed(self) -> bool:
        """Whether it names the keys of all, and so is more than an invitation."""
        return all(one.key for one in self.members) and (self.second is None or bool(self.second.masks))

    @property
    def invitation(self) -> "Agreement":
        """The same without the keys."""
        second = self.second and Second(name=self.second.name)
        return self.model_copy(update={"sites": tuple(Member(name=one.name) for one in self.sites), "second": second})

    @property
    def feature_names(self) -> list[str]:
        """What its columns of features are called."""
        return [column.name for column in self.columns]

    @property
    def secure(self) -> bool:
        """Whether answers are added up by secure sums."""
        return any(asked.masked for asked in self.asked)

    @property
    def longest_question(self) -> int:
        """Bytes that a site has to read at a time, at most; nothing longer is a question of this plan."""
        return max(asked.length for asked in self.asked) + self._shares

    @property
    def longest_reply(self) -> int:
        """Bytes that a site has to send at a time, at most."""
        return max(asked.reply for asked in self.asked) + self._shares

    @property
    def _shares(self) -> int:
        return _SHARES * len(self.sites) if self.secure else 0

    def position(self, name: str) -> int:
        """The number of a member, from 0. Raises `InputError` for a name that none of them has."""
        names = [one.name for one in self.members]
        if name not in names:
            raise InputError(f"the plan has no site '{name}'; it has {', '.join(names)}{nearest_name(name, names)}")
        return names.index(name)

    @property
    def keys(self) -> list[EllipticCurvePublicKey]:
        """The public keys of its members. Raises `InputError` that names the member."""
        return [site_key_from_text(one.key, f"site '{one.name}'") for one in self.members]

    @property
    def aggregator_key(self) -> Ed25519PublicKey:
        """Whose questions these are."""
        return ed25519_key_from_text(self.aggregator, "the aggregator")

    def promised(self, trusted: bool) -> Guarantee:
        """What all answers of one site are worth together. Raises `InputError` where nothing is promised."""
        for promise in self.promises:
            if promise.trusted is trusted:
                return Guarantee(promise.epsilon, promise.delta, promise.unit, promise.adjacency, self.protocol)
        raise InputError("the plan promises nothing for answers without noise")

    def canonical(self) -> bytes:
        """The one text that it has."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    @property
    def digest(self) -> bytes:
        """SHA-256 of it."""
        return hashlib.sha256(self.canonical()).digest()

    @classmethod
    def load(cls, path: Path) -> "Agreement":
        """From a JSON file. Raises `InputError` that names the file and what is wrong in it."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise InputError(
                f"{path} cannot be read: {error.strerror}; put the file there that the plan's coordinator sends"
            ) from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise InputError(
                f"{path} is no plan or invitation of this version of the program ({where and where + ': '}"
                f"{first['msg']}); ask its coordinator for another, and which version has made it"
            ) from error


def terms(question: Question) -> dict[str, Any]:
    """All of a question that no answer changes: plain values by dotted name, digests of arrays."""
    settings, arrays = parts_of(question)
    same = {**settings, **{name: _digest(array) for name, array in arrays.items()}}
    kept = {name: value for name, value in same.items() if not _varies(question, name)}
    return dict(json.loads(json.dumps(kept)))


def require_agreed(question: Question, agreement: Agreement) -> None:
    """Refuse a question that differs from all that were agreed on. Raises `InputError` that names the part."""
    own = terms(question)
    candidates = [asked.same for asked in agreement.asked if asked.kind == question.kind]
    if not candidates:
        raise InputError(f"nobody has agreed to the question '{question.kind}'")
    differing = [
        sorted(name for name in {*own, *same} if name not in own or name not in same or own[name] != same[name])
        for same in candidates
    ]
    if all(differing):
        raise InputError(f"'{min(differing, key=len)[0]}' of the question is not what was agreed on")


def unlike(asked: Asked, known: type[Question]) -> list[str]:
    """The parts that only a plan's question has, or only this installation's of that kind: one is of another version.

    Examples:
        >>> from federation.contract.query import ReleaseId
        >>> from federation.queries.bags import Bags, CountsNoise, CountsQuestion
        >>> question = CountsQuestion(CountsNoise("pure", 1.0), Bags(2, 3), release=ReleaseId("a release"))
        >>> same = {"alike": True, **terms(question)}
        >>> del same["draws"]
        >>> unlike(Asked(kind="counts", times=1, same=same, length=1, reply=1), CountsQuestion)
        ['alike', 'draws']
    """
    parts = [name for name in declared_parts(known) if not _varies(known, name)]
    of = {name: next((part for part in parts if _within(name, part)), None) for name in asked.same}
    return sorted({name for name, part in of.items() if part is None} | {*parts}.difference(of.values()))


def _varies(question: Question | type[Question], name: str) -> bool:
    return any(_within(name, part) for part in question.varies)


def _within(name: str, part: str) -> bool:
    return name == part or name.startswith(part + ".")


def _digest(array: np.ndarray) -> str:
    return "sha256:" + digest("", {"": array})
