"""Secure sums between three real sites through Flower's own server, one of which may be killed in the middle."""

import json
import re
import signal
import subprocess
import sys

import pytest
from support.trials import environment, following, wait_until

from parties.secure_aggregation.party import Record
from scenarios.scores.prediction import choose

pytestmark = [pytest.mark.slow, pytest.mark.servers]

SITES = ["north", "south", "west"]
ASKED = "{kind: mean_operator, protect: row}"
SECURE = {
    ASKED: "{kind: mean_operator, protect: row, trust: secure}",
    "rows: 20": "rows: 20\n  quorum: 1",
    "seconds = 12/": "seconds = 20/",  # the machine may be busy
}


@pytest.fixture
def trial(tmp_path, request):
    """The page, with a secure sum (of the protocol that a test names), followed as far as the collection."""
    with following(tmp_path, until="federation collect", **SECURE | getattr(request, "param", {})) as found:
        yield found


def checked(trial, queries=5):
    """What holds of a release."""
    world = trial.world()
    assert (world["answered"], world["failures"]) == (3, {})
    (model,) = (trial.folder / "trial/releases/001").glob("*.npz")
    assert choose(model).used.guarantee["epsilon"] <= 3
    for site in SITES:
        events = trial.events(site)
        assert "refused" not in events
        assert events.count("charged") == 1
        assert events.count("answered in a secure sum") == queries
        [path] = (trial.folder / site / "state/sums").glob("*.sum")
        assert path.stat().st_mode & 0o077 == 0
        assert Record.read(path.read_bytes()).root == b""


def wait_for(trial, member, event, times=1):
    wait_until(lambda: trial.events(member).count(event) >= times)


def test_three_sites_release_a_sum_of_which_nobody_sees_the_parts(trial):
    trial.do("federation collect trial")
    checked(trial)
    told = " ".join(trial.do("federation collect trial --status").split())
    assert re.search(r"5.*5.*mean_operator", told)
    folder = trial.folder / "trial/exchanges/001/sums/00000"
    for place in range(3):
        assert (folder / f"{2 * 3 + place:05d}-{place:05d}.reply").exists()


@pytest.mark.parametrize(
    "trial",
    [{ASKED: "{kind: soft_vote, trust: secure}"}, {ASKED: "{kind: parameter_average, trust: secure}"}],
    ids=["soft_vote", "parameter_average"],
    indirect=True,
)
def test_what_classifiers_say_is_hidden_by_shares_of_one_noise(trial):
    """Each site trains one, and of its votes or its weights nobody sees but the sum with those of the others."""
    trial.do("federation collect trial")
    checked(trial)
    [release] = trial.world()["ledger"]["releases"]
    assert release["guarantee"]["unit"] == "party"
    assert "letters between real parties" in json.dumps(release)


BELIEVED = {
    "rows: 20": "rows: 20\n  quorum: 1\nservers: one_semi_honest",
    "seconds = 12/": 'seconds = 60/; s/^servers = .*/servers = ["one_semi_honest"]/',
}


@pytest.mark.parametrize("trial", [BELIEVED], ids=["one_semi_honest"], indirect=True)
def test_a_server_that_sites_believe_asks_for_less(trial):
    trial.do("federation collect trial")
    checked(trial, queries=4)
    assert "query 4 of 4 of the secure sum" in " ".join(trial.do("federation collect trial --status").split())


@pytest.mark.parametrize("answered", [1, 3])
def test_a_site_that_is_killed_between_queries_goes_on(trial, answered):
    """With as little notice as a power failure gives, once it has answered so many of the five."""
    words = [sys.executable, "-m", "scenarios.cli", "collect", "trial"]
    with (trial.folder / "collected").open("wb") as told:
        collecting = subprocess.Popen(words, cwd=trial.folder, env=environment(), stdout=told, stderr=told)
    try:
        wait_for(trial, "south", "answered in a secure sum", answered)
        trial.stop("south", signal.SIGKILL)
        trial.serve("south")
        assert collecting.wait(400) == 0, (trial.folder / "collected").read_text()
    finally:
        if collecting.poll() is None:
            collecting.send_signal(signal.SIGINT)
            collecting.wait(60)
    checked(trial)


def test_a_second_server_that_is_killed_goes_on_and_sites_may_have_left(tmp_path):
    """The page on two servers, but that the second is away until all parts have been sent, and the sites have gone."""
    slow = {"seconds = 12/": "seconds = 60/"}
    with following(tmp_path, until="federation collect", page="two-servers", **slow) as trial:
        trial.stop("ombud", signal.SIGKILL)
        words = [sys.executable, "-m", "scenarios.cli", "collect", "trial"]
        with (trial.folder / "collected").open("wb") as told:
            collecting = subprocess.Popen(words, cwd=trial.folder, env=environment(), stdout=told, stderr=told)
        try:
            for site in SITES:
                wait_for(trial, site, "answered in a secure sum")
            wait_until(lambda: b"waiting for ombud" in (trial.folder / "collected").read_bytes())
            for site in SITES:
                trial.stop(site)
            collecting.send_signal(signal.SIGINT)
            assert collecting.wait(60) == 130
        finally:
            if collecting.poll() is None:
                collecting.kill()
                collecting.wait(60)
        trial.serve("ombud")
        trial.do("federation collect trial")
        for site in SITES:
            assert [trial.events(site).count(event) for event in ("charged", "answered in a secure sum")] == [1, 1]
        assert trial.events("ombud").count("told the sum of masks") == 1
        world = trial.world()
        assert (world["answered"], world["failures"]) == (3, {})
        assert "two servers that do not collude, in letters" in json.dumps(world["ledger"])
        told = trial.do("federation collect trial --status")
        assert "the second server 'ombud' has told the masks" in " ".join(told.split())
