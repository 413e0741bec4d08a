"""Every protocol that real sites can serve, between three of them and through Flower's own server."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.trials import ROOT, following

from federation.contract.plugins import Reference
from federation.engines.codec import decode_submission
from federation.signed_messages.messages import SealedAnswer, kind_of, read_question, read_reply
from parties.guard.answering import answered, question_type
from parties.party_data.cohort import Cohort
from parties.site.accounts import Journal
from scenarios.deployment.folder import Folder
from scenarios.scores.prediction import choose

SITES = ["north", "south", "west"]
OF_THE_PAGE = "{kind: mean_operator, protect: row}"
REAL = {"label: outcome": "label: mean_radius", "classes: [malignant, benign]": "range: [5, 30]"}
OTHERS = {
    "majority_vote": {},
    "parameter_average": {},
    "error_marginals, rounds: 3": {},
    "class_ratio": {},
    "mean_operator, protect: label": {},
    "private_labels": REAL,
    "label_sums": REAL,
    "weighted_lba": REAL,
    "noisy_weighted_llp": REAL,
}


def released(folder, protocol, changes):
    """Follow the page with another protocol, up to the release."""
    changes = {OF_THE_PAGE: f"{{kind: {protocol}}}", "delta: 1.0e-6}": "delta: 1.0e-5}", **changes}
    with following(folder, until="mkdir keys", **changes) as followed:
        for site in SITES:  # whether features are public is for a site to say
            path = folder / site / "site.toml"
            path.write_text(path.read_text().replace("public-features = false", "public-features = true"))
        page = (ROOT / "docs/deployment/three-sites.md").read_text()
        followed.follow(page, since="mkdir keys", until="federation predict")
    return folder / "trial"


def checked(trial):
    """What holds of every release."""
    world = json.loads((trial / "releases/001/world.json").read_text())
    assert world["answered"] == 3
    assert world["failures"] == {}
    (model,) = (trial / "releases/001").glob("*.npz")
    promise = choose(model).used.guarantee
    assert promise["epsilon"] <= 3
    assert promise["parameters"].get("entropy") == "system"
    for site in SITES:
        journal = Journal(trial.parent / site / "state/journal.jsonl", reading=True)
        assert [line for line in journal.lines if line["event"] == "refused"] == []
        assert sum(line["event"] == "charged" for line in journal.lines) == 1
    return world


def test_shares_without_noise_are_those_of_the_sites_rows(tmp_path):
    """Bit for bit what the same rows answer in a process of ours, sealed to the coordinator and to nobody else."""
    trial = released(tmp_path, "soft_vote, noise: pure", {})
    checked(trial)
    folder = Folder.opened(trial)
    own = folder.exchange("001")
    packet = (own / "00000.question").read_bytes()
    question = read_question(packet, question_type(kind_of(packet)))
    from aggregator.exchange.exchange import Exchange

    exchange = Exchange.opened(own, folder.agreement, folder.signing_key)
    for place, site in enumerate(SITES):
        rows = Reference(f"{__name__}:SiteRows", {"path": str(tmp_path / site / "patients.csv"), "site": site})
        expected = answered(Cohort(rows.to_json(), place, 1, seed=1), question)
        stored = SealedAnswer.decoded((own / f"00000-{place:05d}.reply").read_bytes())
        _, records = read_reply(exchange.opened_reply(stored, 0, packet, place))
        found = decode_submission(records, question.fields())
        for name, array in expected.arrays.items():
            assert np.array_equal(found.arrays[name], array)
        # Whoever runs the SuperLink can read the question, and of the answer what is sealed.
        known = b"".join(path.read_bytes() for path in (trial / "superlink").glob("state.db*"))
        assert among(packet, known)
        assert among(stored.sealed, known)
        assert not among(b"".join(array.tobytes() for array in expected.arrays.values()), known)


def among(some, known):
    """Whether any 64 bytes of some are found in others; a data base tears what is long into pieces."""
    return any(some[start : start + 64] in known for start in range(0, len(some) - 64, 64))


class SiteRows:
    """The rows of a site's table, read as a simulation reads them."""

    def __init__(self, path, site):
        from scenarios.data.files import read_table

        label = "diagnosis" if site == "south" else "outcome"
        self._table = read_table(Path(path), label, classes=["malignant", "benign"])

    def holdings(self, party):
        from parties.party_data.cohort import Holdings

        everything = np.arange(len(self._table))
        return Holdings(party, self._table.rows(everything), self._table.labels)

    def evaluation(self):
        return None


@pytest.mark.servers
@pytest.mark.parametrize("protocol", OTHERS)
def test_a_protocol_releases_between_real_sites(protocol, tmp_path):
    world = checked(released(tmp_path, protocol, OTHERS[protocol]))
    assert not world["disclosure"]["simulation"]
