"""Which protocols keep a wish, and what is said where none does."""

from __future__ import annotations

import pytest

from aggregator.advice.ranking import rank
from aggregator.contract import registry
from aggregator.contract.protocol import Place, Trust
from aggregator.world.public_numbers import PublicNumbers
from federation.contract.errors import InputError
from scenarios.settings.protocol_options import Protocol
from scenarios.settings.suited_protocols import advised_protocols, for_classes, for_real_labels

NUMBERS = {"rows": 600, "features": 9, "parties": 10, "epsilon": 1.0}
UNITS = {"party": "party", "person": "party", "row": "row", "label": "label"}


def kept(entry, parties_noise):
    """The unit that a release of an entry promises to protect; its noise is where the wish wants it."""
    protocol = registry.protocol(entry["kind"])(**Protocol.parse(entry).options)
    assert protocol.noise_at(Trust.AGGREGATOR) is (Place.PARTY if parties_noise else Place.AGGREGATOR)
    return protocol.promise(PublicNumbers(1e-6), 1.0, Trust.AGGREGATOR).spends.unit.value


@pytest.mark.parametrize("protect", UNITS)
@pytest.mark.parametrize("trust", ["aggregator", "none"])
def test_what_is_proposed_for_classes_protects_what_was_asked_for(protect, trust):
    whole = protect in ("party", "person")
    if whole and trust == "none":
        with pytest.raises(InputError, match="the nearest is --protect row --trust none"):
            for_classes(protect, trust, 2)
        return
    entries, why = for_classes(protect, trust, 2)
    assert [kept(entry, parties_noise=not whole) for entry in entries] == [UNITS[protect]]
    assert why


@pytest.mark.parametrize("protect", ["row", "label"])
@pytest.mark.parametrize("trust", ["aggregator", "none"])
def test_what_is_proposed_for_real_labels_protects_what_was_asked_for(protect, trust):
    entries, why = for_real_labels(protect, trust, (0.0, 5.0), **NUMBERS)
    assert {kept(entry, parties_noise=True) for entry in entries} == {protect}
    assert why


def test_for_labels_it_is_what_federation_advise_says():
    entries, _ = for_real_labels("label", "none", (0.0, 5.0), **NUMBERS)
    found = rank(600, 9, 10, 1.0, 1e-6, label_range=(0.0, 5.0), trust="none")
    assert entries == advised_protocols(found)
    assert [entry["kind"] for entry in entries] == [one.mechanism for one in found[:3]]


def test_what_nothing_keeps_names_the_nearest():
    with pytest.raises(InputError, match="--positive, or use --protect party"):
        for_classes("label", "none", 3)
    with pytest.raises(InputError, match="the nearest is --protect row"):
        for_real_labels("party", "aggregator", (0.0, 1.0), **NUMBERS)
    assert for_classes("party", "aggregator", 60)[0] == [{"kind": "soft_vote"}]
