"""Who has, sees and is trusted with what: the facts, by where the noise is added and who adds up the responses.

The place of the noise decides the kind of differential privacy: central at the aggregator, local at each party, and
distributed with secure aggregation where parties add shares of one noise. Every text about these facts lists all of
them in their own words, so that no text can omit or contradict one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from aggregator.contract.protocol import Place, Sent
from federation.contract.guarantee import Keeper
from federation.contract.trust import Servers


class Role(StrEnum):
    """Who takes part, in the order in which texts list them."""

    PARTY = "each party"
    AGGREGATOR = "the aggregator"
    HELPER = "the helper server"
    COORDINATOR = "the coordinator"
    ADMINISTRATOR = "each site administrator"
    EVERYBODY = "everybody else"


class Relation(StrEnum):
    """How a fact relates a role to information."""

    HAS = "has"
    SEES = "sees"
    TRUSTED = "is trusted with"


class Statement(StrEnum):
    """What a role has, sees or is trusted with; `{sent}` are the things that a party sends."""

    OWN_ROWS = "its own rows with their labels"
    OWN_VIEW = "the public rows, the queries and the released model, and nothing that another party sends"
    OWN_DATA = "its own data only"
    OWN_NOISE = "adding the noise to its response"
    NOISE_SHARE = "adding its share of the noise and keeping this share secret"

    RESPONSES = "the responses of all parties"
    RESPONSES_BEFORE_NOISE = "every response until it has added the noise"
    MASKED_RESPONSES = "the masked responses of all parties: {sent}"
    EXACT = "from every party without noise: {sent}"
    NOISY = "from every party with noise: {sent}"
    ONLY_SUM = "only the sum of the masked responses of all parties, with the whole noise"
    NO_SINGLE_RESPONSE = "no response of a single party without its mask, even if it deviates from the protocol"
    ADDING_NOISE = "adding the noise, using the responses for nothing else and keeping them secret"
    NOTHING_PROTECTED = "nothing that is protected, because it sees no more than it may publish"
    EVERYTHING = "everything, because no noise protects the responses"
    NO_COLLUSION = "not colluding with more parties than declared (parties.colluding)"
    FOLLOWING = "following the protocol, because a server that deviates could read the response of each party"
    NOT_WITH_HELPER = "not colluding with the helper server"

    MASK_KEYS = "the keys of the masks, and no rows"
    WHO_RESPONDS = "which parties take part and when, and nothing that a party sends"
    ONLY_MASKS = (
        "telling the aggregator only the sum of the masks, because together they could read from each party with too "
        "little noise: {sent}"
    )

    KEY_LIST = "a list of the parties' keys without false keys, with which it could read their responses"
    COMPARING_DIGEST = (
        "comparing all digits of the plan's digest by telephone with all sites, not only with the coordinator"
    )
    COMPARING_MASKS = "comparing the key for masks by telephone with the helper server, not with the coordinator"

    MODEL = "the released model"
    NO_PARTY = "no private row, response or sum of a party"
    DECLARED_PUBLIC = "what parties send without noise, which is declared public: {sent}"
    NOTHING = "nothing"
    UNKNOWN = "not recorded"


@dataclass(frozen=True)
class Fact:
    """One role has, sees or is trusted with one thing; `sent` are the things that a party sends and it is about."""

    role: Role
    relation: Relation
    statement: Statement
    sent: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.statement).format(sent=" and ".join(self.sent))


ADDED_BY: Mapping[Place, str] = {
    Place.AGGREGATOR: "the aggregator",
    Place.PARTY: "each party",
    Place.SHARES: "all parties in shares",
    Place.NOWHERE: "nobody",
}

MODELS: Mapping[Place, str] = {
    Place.AGGREGATOR: "central DP",
    Place.PARTY: "local DP",
    Place.SHARES: "distributed DP with secure aggregation",
    Place.NOWHERE: "no DP",
}


def noise(place: Place) -> str:
    """Return who adds the noise, and the model of differential privacy that this is.

    Examples:
        >>> noise(Place.PARTY)
        'noise is added by each party (local DP)'
    """
    return f"noise is added by {ADDED_BY[place]} ({MODELS[place]})"


_TRUSTED_PARTY: Mapping[Place | None, Statement] = {
    Place.PARTY: Statement.OWN_NOISE,
    Place.SHARES: Statement.NOISE_SHARE,
}


def disclosed(place: Place | None, servers: Servers, sent: Sequence[Sent]) -> tuple[Fact, ...]:
    """Return all facts about one release.

    Parameters
    ----------
    place:
        Where the noise is added; None where this was not recorded.
    servers:
        Which servers add up the responses in secure aggregation. It counts for shares of noise only.
    sent:
        What leaves a party for the release.

    Examples:
        >>> facts = disclosed(Place.SHARES, "two", [Sent("its sums", 9, private=True)])
        >>> [str(fact) for fact in facts if (fact.role, fact.relation) == (Role.AGGREGATOR, Relation.SEES)]
        ['only the sum of the masked responses of all parties, with the whole noise', 'no response of a single party
        without its mask, even if it deviates from the protocol']
    """
    found = [
        Fact(Role.PARTY, Relation.HAS, Statement.OWN_ROWS),
        Fact(Role.PARTY, Relation.SEES, Statement.OWN_VIEW),
        Fact(Role.PARTY, Relation.TRUSTED, Statement.OWN_DATA),
    ]
    if place in _TRUSTED_PARTY:
        found.append(Fact(Role.PARTY, Relation.TRUSTED, _TRUSTED_PARTY[place]))
    found += _collecting(place, servers, sent)
    found.append(Fact(Role.EVERYBODY, Relation.HAS, Statement.MODEL))
    found.append(Fact(Role.EVERYBODY, Relation.SEES, Statement.NO_PARTY))
    exact = tuple(one.what for one in sent if not one.private)
    if exact and place in (Place.PARTY, Place.SHARES):
        found.append(Fact(Role.EVERYBODY, Relation.SEES, Statement.DECLARED_PUBLIC, exact))
    found.append(Fact(Role.EVERYBODY, Relation.TRUSTED, Statement.NOTHING))
    return tuple(found)


def _collecting(place: Place | None, servers: Servers, sent: Sequence[Sent]) -> Iterator[Fact]:
    """Return the facts about those who collect the responses and about those who vouch for their keys."""
    exact = tuple(one.what for one in sent if not one.private)
    noisy = tuple(one.what for one in sent if one.private)
    has, sees, trusted = Relation.HAS, Relation.SEES, Relation.TRUSTED
    match place:
        case Place.AGGREGATOR:
            yield Fact(Role.AGGREGATOR, has, Statement.RESPONSES_BEFORE_NOISE)
            yield from _seen(exact, noisy)
            yield Fact(Role.AGGREGATOR, trusted, Statement.ADDING_NOISE)
        case Place.PARTY:
            yield Fact(Role.AGGREGATOR, has, Statement.RESPONSES)
            yield from _seen(exact, noisy)
            yield Fact(Role.AGGREGATOR, trusted, Statement.NOTHING_PROTECTED)
        case Place.SHARES:
            yield Fact(Role.AGGREGATOR, has, Statement.MASKED_RESPONSES, noisy)
            yield Fact(Role.AGGREGATOR, sees, Statement.ONLY_SUM)
            if servers != "one_semi_honest":
                yield Fact(Role.AGGREGATOR, sees, Statement.NO_SINGLE_RESPONSE)
            yield from _seen(exact, ())
            yield from _adding_up(servers, noisy)
        case Place.NOWHERE:
            yield Fact(Role.AGGREGATOR, has, Statement.RESPONSES)
            yield from _seen(exact, noisy)
            yield Fact(Role.AGGREGATOR, trusted, Statement.EVERYTHING)
        case None:
            yield from (Fact(Role.AGGREGATOR, relation, Statement.UNKNOWN) for relation in Relation)


def _seen(exact: tuple[str, ...], noisy: tuple[str, ...]) -> Iterator[Fact]:
    """Return what the aggregator sees from every party."""
    for statement, sent in ((Statement.NOISY, noisy), (Statement.EXACT, exact)):
        if sent:
            yield Fact(Role.AGGREGATOR, Relation.SEES, statement, sent)


def _adding_up(servers: Servers, noisy: tuple[str, ...]) -> Iterator[Fact]:
    """Return what the servers of a secure aggregation are trusted with, and who vouches for the keys of its masks."""
    trusted = Relation.TRUSTED
    semi_honest = servers == "one_semi_honest"
    if semi_honest:
        yield Fact(Role.AGGREGATOR, trusted, Statement.FOLLOWING)
    yield Fact(Role.AGGREGATOR, trusted, Statement.NO_COLLUSION)
    if servers == "two":
        yield Fact(Role.AGGREGATOR, trusted, Statement.NOT_WITH_HELPER)
        yield Fact(Role.HELPER, Relation.HAS, Statement.MASK_KEYS)
        yield Fact(Role.HELPER, Relation.SEES, Statement.WHO_RESPONDS)
        yield Fact(Role.HELPER, trusted, Statement.ONLY_MASKS, noisy)
        yield Fact(Role.HELPER, trusted, Statement.NO_COLLUSION)
        yield Fact(Role.HELPER, trusted, Statement.COMPARING_DIGEST)
    yield Fact(Role.COORDINATOR, trusted, Statement.KEY_LIST)
    if not semi_honest:
        yield Fact(Role.ADMINISTRATOR, trusted, Statement.COMPARING_DIGEST)
    if servers == "two":
        yield Fact(Role.ADMINISTRATOR, trusted, Statement.COMPARING_MASKS)


class Protection(StrEnum):
    """What protects one thing that leaves a party."""

    AGGREGATOR = "no noise (the aggregator is trusted to add it)"
    PARTY = "noise that the party adds"
    SHARES = "a share of the noise that the party adds, and a mask: only the sum over all parties can be read"
    PUBLIC = "no noise (it is declared public)"
    NOTHING = "no noise"


def protection(place: Place | None, private: bool) -> Protection:
    """Return what protects a thing that leaves a party with noise of its own (`private`), or without.

    Examples:
        >>> protection(Place.SHARES, private=False)
        <Protection.PUBLIC: 'no noise (it is declared public)'>
    """
    if private:
        return Protection.SHARES if place is Place.SHARES else Protection.PARTY
    if place is Place.AGGREGATOR:
        return Protection.AGGREGATOR
    return Protection.NOTHING if place is Place.NOWHERE else Protection.PUBLIC


def responsible(place: Place | None) -> Keeper:
    """Return who is responsible for what is assumed of the computer that adds the noise."""
    return Keeper.SITE if place in (Place.PARTY, Place.SHARES) else Keeper.COORDINATOR
