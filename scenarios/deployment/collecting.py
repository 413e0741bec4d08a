"""Collection of responses from sites that have agreed, up to the release; an interrupted collection goes on."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aggregator.contract.ledger import Budget
from aggregator.exchange.app import WORLD_PLAN, outcome_of, set_aside
from aggregator.exchange.exchange import LEFT_OUT, QUESTION, RECORD, REPLY, Exchange, Spent
from aggregator.exchange.secure_aggregation import SUMS, last_sum, over
from aggregator.trial.plan import TrialPlan
from federation.contract.errors import InputError, QuorumError
from federation.contract.files import alone, read_object, write_lasting
from federation.signed_messages.agreement import Agreement
from scenarios.deployment.folder import Folder
from scenarios.deployment.plans import begun
from scenarios.deployment.superlink import STATE, SuperLink, superlink

_PAUSE = 1.0  # seconds between two looks at a run
_RUN, _LOCK = "run.json", "collect.lock"
_SHOWN = 5  # sites by name


@dataclass(frozen=True)
class Progress:
    """How far an exchange is: which sites have yet to answer the question numbered `asked`, and which are left out.

    That is the first question, from 1, for which somebody is waited for, or else the last; 0 before the first. Of a
    secure sum `of_sum`, over answers to a question of this kind, it counts the queries. Once all sites have sent their
    parts of one with a `second` server, that one alone is asked, by this name.
    """

    sites: int
    questions: int
    asked: int
    waiting: tuple[str, ...]
    left_out: tuple[str, ...]
    of_sum: str = ""
    second: str = ""

    def __str__(self) -> str:
        if not self.asked:
            return f"no question has been asked of the {self.sites} sites"
        if self.second:
            has = "has not told" if self.waiting or self.left_out else "has told"
            waiting = f"; waiting for {self.second}" if self.waiting else ""
            return f"the second server '{self.second}' {has} the masks of the secure sum over '{self.of_sum}'{waiting}"
        answered = self.sites - len(self.waiting) - len(self.left_out)
        waiting = f"; waiting for {_named(self.waiting)}" if self.waiting else ""
        left_out = f"; left out: {_named(self.left_out)}" if self.left_out else ""
        place = f"question {self.asked} of {self.questions}"
        if self.of_sum:
            place = f"query {self.asked} of {self.questions} of the secure sum over '{self.of_sum}'"
        return f"{answered} of {self.sites} sites answered {place}{waiting}{left_out}"


@dataclass(frozen=True)
class Patience:
    """For how many seconds a site may take for a question, and sites are waited for in all."""

    question: float
    exchange: float


def collect(folder: Folder, patience: Patience, fresh: bool, tell: Callable[[str], None]) -> Mapping[str, Any]:
    """Go on with the last exchange of a deployment until it is released, or with a `fresh` one; how it ended.

    What was released is not asked for again. `tell` gets a line whenever there is something new. Raises `InputError`s,
    and `BudgetExceededError` for an exchange beyond the budget, before anybody has been asked.
    """
    agreement = folder.agreement
    folder.require_room()
    with alone(folder.path / _LOCK, f"another process collects in {folder.path}; wait for it, or end it"):
        number = _number(folder, fresh)
        if folder.release(number).exists():
            return {**(outcome_of(folder.path, number) or {}), "exchange": number, "status": "released already"}
        if ended := over(folder.exchange(number)):
            return {"exchange": number, "status": "failed", "why": ended["why"], "exit_code": QuorumError.exit_code}
        if time.time() > agreement.closing:
            raise InputError(
                f"the deployment closed on {time.strftime('%Y-%m-%d %H:%M', time.localtime(agreement.closing))}, and "
                "sites answer no more; make a new one"
            )
        _begin(folder, agreement, number)
        with superlink(folder, agreement) as link:
            write_lasting(folder.nodes, json.dumps(link.register(agreement)).encode())
            outcome = _run(folder, number, patience, link, tell)
        if outcome is None:
            folder.require_room()
        return {**(outcome or _lost(folder)), "exchange": number}


def progress(folder: Folder, number: str) -> Progress:
    """How far an exchange is, by what lies in its folder."""
    agreement, own = folder.agreement, folder.exchange(number)
    total, times, asked = len(agreement.sites), sum(one.times for one in agreement.asked), 0
    waiting: list[str] = []
    left_out: list[str] = []
    for question in sorted(own.glob(f"*{QUESTION}")):
        asked = int(question.stem) + 1
        lacking = [
            (site.name, place)
            for place, site in enumerate(agreement.sites)
            if not (own / f"{question.stem}-{place:05d}{REPLY}").exists()
        ]
        left_out = [name for name, place in lacking if (own / f"{question.stem}-{place:05d}{LEFT_OUT}").exists()]
        waiting = [name for name, _ in lacking if name not in left_out]
        if waiting:
            break
    if not waiting and (summed := last_sum(own)) is not None:
        away = summed.lacking(total)
        left_out = [agreement.members[place].name for place, left in away if left]
        waiting = [agreement.members[place].name for place, left in away if not left]
        second = agreement.members[-1].name if summed.asks_second else ""
        place = summed.query + 1
        return Progress(total, summed.queries, place, tuple(waiting), tuple(left_out), summed.kind, second)
    return Progress(total, times, asked, tuple(waiting), tuple(left_out))


def status(folder: Folder) -> list[dict[str, Any]]:
    """Each exchange: its number, what has become of it, and how far it is."""
    found = []
    for number in folder.exchanges:
        outcome = outcome_of(folder.path, number) or {}
        released = folder.release(number).exists()
        state = "released" if released else outcome.get("status", "open")
        found.append({"exchange": number, "status": state, "progress": str(progress(folder, number))})
    return found


def totals(folder: Folder) -> list[dict[str, Any]]:
    """What all exchanges have spent together, by unit."""
    return Spent.load(folder.ledger).totals(TrialPlan.load(folder.path / WORLD_PLAN).public.delta)


def _number(folder: Folder, fresh: bool) -> str:
    """Return the number of the exchange to go on with, from 001.

    Raises `InputError` for a fresh one while the last is open.
    """
    known = folder.exchanges
    if not known:
        return "001"
    last = known[-1]
    if not fresh:
        return last
    if not folder.release(last).exists() and over(folder.exchange(last)) is None:
        raise InputError(
            f"exchange {last} has not been released, and what it spends is set aside; go on with it: federation "
            f"collect {folder.path}"
        )
    return f"{int(last) + 1:03d}"


def _begin(folder: Folder, agreement: Agreement, number: str) -> None:
    """Open an exchange and hold what it will spend against the budget. Raises `BudgetExceededError`."""
    own = folder.exchange(number)
    plan, new = TrialPlan.load(folder.path / WORLD_PLAN), not own.exists()
    if new and begun(plan, folder.path)[0] != agreement.asked:
        raise InputError(
            "this machine would ask other questions than those that the sites have agreed to, as another version of "
            "this program or another processor may; collect with those that the deployment was made with, or make a "
            "new one"
        )
    own.parent.mkdir(mode=0o700, exist_ok=True)
    exchange = Exchange.opened(own, agreement, folder.signing_key)
    try:
        budget, spent = Budget.of(plan.releases.budget, choice=plan.releases.choice), Spent.load(folder.ledger)
        _require_whole(folder, spent)
        set_aside(agreement, spent, exchange.identifier.hex(), budget)
    except BaseException:
        if new:
            for file in own.iterdir():
                file.unlink()
            own.rmdir()
        raise


def _require_whole(folder: Folder, spent: Spent) -> None:
    """Refuse a ledger that lacks an exchange in which sites were asked. Raises `InputError`: it is not the newest."""
    for number in folder.exchanges:
        own = folder.exchange(number)
        ended = over(own)
        if (ended and not ended["masked"]) or not (any(own.glob(f"*{QUESTION}")) or (own / SUMS).exists()):
            continue  # nobody was asked, or has paid
        if read_object(own / RECORD, "restore it from a copy")["exchange"] not in spent.charged:
            raise InputError(
                f"{spent.path} knows nothing of exchange {number}, in which sites were asked: it is gone, or an older "
                "copy was put back; restore the newest one, without which nobody knows what has been spent, or make a "
                "new deployment"
            )


def _run(
    folder: Folder,
    number: str,
    patience: Patience,
    link: SuperLink,
    tell: Callable[[str], None],
) -> Mapping[str, Any] | None:
    """Start the exchange's app, and wait until it has ended, interrupted stop it; what it says of how it went."""
    record = folder.path / STATE / _RUN
    record.parent.mkdir(mode=0o700, exist_ok=True)
    if record.exists():
        link.stop(int(read_object(record, "remove it")["run"]))
    for left_out in folder.exchange(number).rglob(f"*{LEFT_OUT}"):
        left_out.unlink()  # all who have not answered are asked again
    config: dict[str, str | float] = {
        "dir": str(folder.path),
        "exchange": number,
        "patience": patience.question,
        "wait": patience.exchange,
    }
    run = link.start(config)
    write_lasting(record, json.dumps({"run": run}).encode())
    last, outcome = "", None
    try:
        while not link.finished(run):
            if (now := _described(progress(folder, number), link, folder)) != last:
                tell(now)
                last = now
            time.sleep(_PAUSE)
        said = outcome_of(folder.path, number) or {}
        outcome = said if said.get("run") == run else None
        return outcome
    finally:
        if outcome is None:
            link.stop(run)


def _described(found: Progress, link: SuperLink, folder: Folder) -> str:
    """The progress, and who of those that are waited for is not connected."""
    nodes = read_object(folder.nodes, "collect again")
    online = link.online()
    away = [name for name in found.waiting if nodes[name] not in online]
    return f"{found} (not connected: {_named(away)})" if away else str(found)


def _named(sites: Sequence[str]) -> str:
    more = f" and {len(sites) - _SHOWN} more" if len(sites) > _SHOWN else ""
    return ", ".join(sites[:_SHOWN]) + more


def _lost(folder: Folder) -> dict[str, Any]:
    return {
        "status": "failed",
        "why": f"the run ended and did not say how; see the last lines of {folder.path / STATE / 'log'}",
        "exit_code": 1,
    }


def spent_lines(totals: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was spent, a line for each unit, as in `epsilon 1, delta 1e-05 per label`.

    Examples:
        >>> spent_lines([{"epsilon": 1.0, "delta": 1e-5, "unit": "label"}])
        ['epsilon 1, delta 1e-05 per label']
    """
    return [f"epsilon {one['epsilon']:g}, delta {one['delta']:g} per {one['unit']}" for one in totals]


def written(folder: Folder, outcome: Mapping[str, Any]) -> list[Path]:
    """The files of a release."""
    return [folder.release(str(outcome["exchange"])) / name for name in outcome.get("files", ())]
