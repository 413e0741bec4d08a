"""A variant that fails in the middle of a world costs the others nothing, is told of, and is tried again."""

import json
import re

import pytest

import scenarios
from aggregator.protocols.error_marginals.session import ExchangeSession
from aggregator.protocols.mean_operator.session import MomentSession
from aggregator.server.variants import VariantRun
from federation.contract.errors import BudgetExceededError, FederationError, InputError, QuorumError
from scenarios.cli import main
from scenarios.runs import runner
from scenarios.runs.trial import World
from scenarios.scores.results import read_results

DOCUMENT = {
    "name": "two",
    "data": {"source": "breast_cancer", "auxiliary": 0.3},
    "parties": {"count": 2},
    "protocols": [{"kind": "error_marginals", "learner": "linear"}, {"kind": "mean_operator"}, {"kind": "constant"}],
    "baselines": False,  # noise_free would fail with what it stands for
    "privacy": {"epsilon": 1},
    "trials": {"splits": 2, "noise": 1},
}
ALONE = {**DOCUMENT, "protocols": DOCUMENT["protocols"][1:2]}


pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(autouse=True)
def undebugged(monkeypatch):
    """Nobody debugs."""
    monkeypatch.delenv("FEDERATION_DEBUG", raising=False)


@pytest.fixture
def broken(monkeypatch):
    """Makes a method of a session raise an error in the world of the second split; every time until undone."""

    def make(session, method, error):
        whole = getattr(session, method)

        def failing(self, *arguments, **options):
            if self._world.plan.task.split == 1:
                raise error
            return whole(self, *arguments)

        monkeypatch.setattr(session, method, failing)

    return make


def raising(error):
    """A method that fails."""

    def failing(self, *arguments, **options):
        raise error

    return failing


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_draw", lambda *arguments: None)
        return scenarios.run(DOCUMENT, out=tmp_path_factory.mktemp("whole") / "out")


@pytest.mark.slow
def test_a_variant_that_cannot_be_scored_has_failed(whole, tmp_path, monkeypatch):
    score = World._rows

    def failing(self, variant, *arguments):
        rows = score(self, variant, *arguments)
        if variant.kind == "mean_operator":
            next(rows)
            raise InputError("not finite")
        return rows

    monkeypatch.setattr(World, "_rows", failing)
    with pytest.raises(scenarios.IncompleteRunError, match=r"mean_operator.*0.*1"):
        scenarios.run(DOCUMENT, out=tmp_path / "out")
    kept = [row for row in whole.rows if row["protocol"] != "mean_operator"]
    assert read_results(tmp_path / "out" / "results.csv") == kept


@pytest.mark.parametrize(
    ("method", "error", "cause"),
    [
        ("take", InputError("bad bins"), "bad bins"),
        (
            "learn",
            ZeroDivisionError("odd\nthing"),
            "unexpected ZeroDivisionError: odd thing; run with FEDERATION_DEBUG=1 for",
        ),
        pytest.param("diagnostics", InputError("bad bins"), "bad bins", marks=pytest.mark.slow),
    ],
)
def test_all_else_is_kept_and_the_failed_variant_is_tried_again(
    whole, broken, tmp_path, monkeypatch, method, error, cause
):
    broken(ExchangeSession, method, error)
    out = tmp_path / "out"
    with pytest.raises(scenarios.IncompleteRunError) as failed:
        scenarios.run(DOCUMENT, out=out)
    first, last = str(failed.value).splitlines()
    assert first.startswith(f"variant 'error_marginals-linear' failed at split 1: {cause}")
    assert re.search(rf"{out}.*--resume", last)
    kept = [row for row in whole.rows if not (row["protocol"] == "error_marginals" and row["split"] == 1)]
    assert read_results(out / "results.csv") == failed.value.run.rows == kept
    record = json.loads((out / "run.json").read_text())
    assert (record["status"], record["worlds"]) == ("failed", {"finished": 2, "all": 2})
    [told] = record["failed_variants"]
    assert (told["variant"], told["world"]) == ("error_marginals-linear", "split 1")
    assert told["cause"].startswith(cause)
    monkeypatch.undo()
    monkeypatch.setattr(runner, "_draw", lambda *arguments: None)
    again = scenarios.run(DOCUMENT, out=out, resume=True)
    assert (out / "results.csv").read_bytes() == (whole.directory / "results.csv").read_bytes()
    assert again.failed_variants == json.loads((out / "run.json").read_text())["failed_variants"] == []


@pytest.mark.slow
def test_a_variant_that_cannot_begin_in_a_later_world_costs_the_others_nothing(whole, tmp_path, monkeypatch):
    begin, begun = ExchangeSession.__init__, []

    def failing(self, world, *arguments, **options):
        begin(self, world, *arguments, **options)
        begun.append(world.plan.task.split)
        if world.plan.task.split == 1:
            raise InputError("too few rows")

    monkeypatch.setattr(ExchangeSession, "__init__", failing)
    document, out = {**DOCUMENT, "trials": {"splits": 3, "noise": 1}}, tmp_path / "out"
    with pytest.raises(scenarios.IncompleteRunError, match=r"error_marginals-linear.*1"):
        scenarios.run(document, out=out)
    assert begun == [0, 1, 2]
    kept = [row for row in whole.rows if not (row["protocol"] == "error_marginals" and row["split"] == 1)]
    assert [row for row in read_results(out / "results.csv") if row["split"] < 2] == kept
    with pytest.raises(scenarios.IncompleteRunError):
        scenarios.run(document, out=out, resume=True)
    assert begun == [0, 1, 2, 1]


def test_a_variant_that_cannot_begin_in_the_first_world_ends_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(ExchangeSession, "__init__", raising(InputError("too few rows")))
    with pytest.raises(InputError, match="error_marginals-linear"):
        scenarios.run(DOCUMENT, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_variant_that_failed_has_no_model(broken, tmp_path):
    broken(ExchangeSession, "learn", InputError("bad bins"))
    with pytest.raises(scenarios.IncompleteRunError):
        scenarios.run(DOCUMENT, out=tmp_path / "out", keep_models=True)
    models = sorted(path.relative_to(tmp_path / "out" / "models").as_posix() for path in tmp_path.rglob("*.npz"))
    assert models == ["error_marginals-linear/split-0.npz", *(f"mean_operator/split-{split}.npz" for split in (0, 1))]


@pytest.mark.parametrize(
    ("method", "error"), [("take", QuorumError("too few")), ("_begin", BudgetExceededError("too much"))]
)
def test_budgets_and_quorums_end_the_run_and_name_the_variant(broken, tmp_path, error, method):
    broken(ExchangeSession, method, error)
    with pytest.raises(type(error), match=rf"error_marginals-linear.*{error}"):
        scenarios.run(DOCUMENT, out=tmp_path / "out")
    assert {row["split"] for row in read_results(tmp_path / "out" / "results.csv")} == {0}


@pytest.mark.parametrize("method", ["learn", "__init__"])
def test_a_world_without_any_variant_left_ends_the_run(monkeypatch, tmp_path, method):
    monkeypatch.setattr(MomentSession, method, raising(InputError("no")))
    with pytest.raises(InputError, match="mean_operator"):
        scenarios.run(ALONE, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("method", ["learn", "__init__"])
def test_what_nobody_foresaw_names_the_variant_or_is_debugged(monkeypatch, tmp_path, method):
    monkeypatch.setattr(MomentSession, method, raising(ZeroDivisionError()))
    with pytest.raises(FederationError, match=r"mean_operator.*ZeroDivisionError"):
        scenarios.run(ALONE, out=tmp_path / "out")
    monkeypatch.setenv("FEDERATION_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        scenarios.run(DOCUMENT, out=tmp_path / "out")


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_command_shows_what_there_is_and_fails(broken, tmp_path, monkeypatch, capsys, form):
    broken(ExchangeSession, "learn", InputError("bad bins"))
    (tmp_path / "two.yaml").write_text(json.dumps(DOCUMENT))
    monkeypatch.setattr("sys.argv", ["federation", "run", f"{tmp_path}/two.yaml", "--out", f"{tmp_path}/out", *form])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    told = capsys.readouterr()
    assert re.search(r"error.*error_marginals-linear.*1", told.err)
    if form:
        assert json.loads(told.out)["failed_variants"][0]["cause"] == "bad bins"
    else:
        assert "mean_operator" in told.out
        assert "wrote" in told.out
        again = f"next: federation run {tmp_path}/two.yaml --resume --out {tmp_path}/out"
        assert told.out.splitlines()[-1] == again


@pytest.mark.parametrize("method", ["__init__", "finish"])
def test_a_reference_that_nobody_asked_for_costs_nothing_when_it_fails(tmp_path, monkeypatch, method):
    honest, made = getattr(VariantRun, method), VariantRun.__init__

    def kept(self, world, variant, inquiry):
        self.chosen = variant
        made(self, world, variant, inquiry)

    def failing(self, *arguments, **options):
        variant = arguments[1] if method == "__init__" else self.chosen
        if variant.reference:
            raise InputError("not without noise")
        return honest(self, *arguments)

    monkeypatch.setattr(VariantRun, "__init__", kept)
    monkeypatch.setattr(VariantRun, method, failing)
    run = scenarios.run({**ALONE, "baselines": True}, out=tmp_path / "out")
    assert run.failed_variants == []
    assert {row["variant"] for row in run.rows} == {"mean_operator", "constant", "pooled", "individual"}
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["status"] == "done"
    assert "the reference 'noise_free' could not be made: not without noise" in record["remarks"]
