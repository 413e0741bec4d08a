"""`federation party`: what a site does: make its keys, look at a plan, approve it, answer, and see what has left."""

from __future__ import annotations

import getpass
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from federation.contract.errors import BudgetExceededError, InputError
from scenarios.commands.options import AsJson
from scenarios.commands.output import tell
from scenarios.commands.run import logged

if TYPE_CHECKING:
    from federation.signed_messages.agreement import Agreement
    from parties.site.settings import SecondSettings, Settings
    from scenarios.deployment.site_texts import Outlook

party_app = typer.Typer(no_args_is_help=True, help="A site of a real federation: what a hospital runs beside its data.")

_READ_OUT = (
    "the key for masks: {masks}; read it out to each SITE by telephone: sites that had it from the coordinator alone "
    "would mask their parts for whomever the coordinator likes"
)
SiteFile = Annotated[Path, Argument(metavar="SITE.toml", help="The site's own configuration.")]
Id = Annotated[str | None, Argument(metavar="ID", help="Which one; default: the only one that waits.")]


@party_app.callback()
def _linux() -> None:
    if sys.platform != "linux":
        raise InputError(f"sites run on Linux, whose limits keep a question within its bounds; this is {sys.platform}")


@party_app.command()
def init(
    site: SiteFile,
    invitation: Annotated[Path, Option(metavar="FILE", help="invitation.json, from the plan's coordinator.")],
    name: Annotated[str, Option(help="This site's name, one of those in the invitation; or the second server's.")],
    data: Annotated[Path | None, Option(metavar="FILE", help="The rows: csv, parquet, npz or svmlight.")] = None,
) -> None:
    """Make a site's key and its configuration, which explains itself. Nothing is overwritten.

    The second server of a plan that has two begins so, too: it holds no rows.
    """
    from federation.signed_messages.agreement import Agreement
    from federation.signed_messages.keys import (
        fingerprint,
        masks_key,
        new_site_key,
        public_text,
        raw_public,
        save_key,
        sums_key,
    )
    from parties.site.state import State
    from scenarios.deployment.site_draft import second_draft, site_draft

    plan = Agreement.load(invitation)
    second = plan.position(name) == len(plan.sites)
    if second and data is not None:
        raise InputError(f"--data: '{name}' runs the second server of this plan, which holds no rows; leave it out")
    folder = site.absolute().parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret, public = folder / "key", folder / f"{name}.pub"
    for path in (site, secret, public, folder / "state"):
        if path.exists():
            raise InputError(f"{path} exists, and is not overwritten; choose another folder for this site")
    key = new_site_key()
    save_key(secret, key)
    masks = raw_public(masks_key(key)).hex()
    # By the second of its keys other sites know a site in secure sums; for that of a second server they mask parts.
    sums = masks if second else public_text(sums_key(key).public_key())
    public.write_text(f"{public_text(key.public_key())}\n{sums}\n", encoding="utf-8")
    State.made(folder / "state")
    with os.fdopen(os.open(site, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        rows = data or Path("rows.csv")
        rows = rows if rows.is_absolute() else Path(os.path.relpath(rows, folder))
        file.write(second_draft(plan, name) if second else site_draft(plan, name, rows))
    for line in (
        f"wrote {site}, {secret} and {public}",
        f"this {'server' if second else 'site'}'s key: {fingerprint(key.public_key())}",
        f"the aggregator's key: {fingerprint(plan.aggregator_key)}",
        *([_READ_OUT.format(masks=masks)] if second else []),
        f"next: send {public} to the plan's coordinator, and compare both keys with them by telephone",
        f"then: put the plan.json that they send beside {site}, and type: federation party check {site}",
    ):
        print(line)


@party_app.command()
def check(site: SiteFile, as_json: AsJson = False) -> None:
    """Say what a plan asks of this site, what that costs, and whether its table is as the plan has it.

    Nobody is connected to. The exit code is 0 if this site is ready, 2 if not, and 3 if its allowance is too small.
    """
    from scenarios.deployment.site_texts import record

    found = _outlook(site)
    tell(as_json, record(found), text=found.lines, hidden=record(found))
    if found.errors:
        raise (BudgetExceededError if found.over else InputError)("\n".join(found.errors))


@party_app.command()
def approve(site: SiteFile, name: Id = None) -> None:
    """Agree to a plan, or to one exchange of it; the running service sees it at once."""
    from parties.site.policy import APPROVED

    found = _outlook(site)
    tell(False, {}, text=[*found.lines, *(f"error: {sentence}" for sentence in found.errors)])
    _decide(site, name, APPROVED)


@party_app.command()
def deny(site: SiteFile, name: Id = None) -> None:
    """Refuse a plan, or one exchange of it, also one that was approved."""
    from parties.site.policy import DENIED

    _decide(site, name, DENIED)


@party_app.command()
def run(
    site: SiteFile,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Say only what goes wrong.")] = False,
    log_file: Annotated[
        Path | None, Option("--log-file", metavar="FILE", help="Add all that is said here, with times.")
    ] = None,
) -> None:
    """Serve: fetch questions, answer those that may be answered, until a signal says to stop."""
    from parties.helper_server import run as serve_second
    from parties.site.service import run as serve
    from parties.site.settings import SecondSettings
    from scenarios.deployment.table_check import WatchedTable

    settings, agreement = _loaded(site)
    with logged(quiet=False, verbose=not quiet, file=log_file, times=True):
        if isinstance(settings, SecondSettings):
            serve_second(settings, agreement)
        else:
            serve(settings, agreement, WatchedTable(settings.data, agreement, agreement.position(settings.name)))


@party_app.command()
def log(
    site: SiteFile,
    verify: Annotated[bool, Option("--verify", help="Only say whether a line is missing or changed.")] = False,
    head: Annotated[
        str | None,
        Option("--head", metavar="HASH", help="With --verify: that the coordinator's `collect --status` has shown."),
    ] = None,
    show: Annotated[
        int | None, Option("--show", metavar="N", min=1, help="All of line N, as JSON, with the numbers that left.")
    ] = None,
) -> None:
    """Print what has happened at this site, line by line; every line vouches for all before it."""
    from federation.signed_messages.messages import plain
    from parties.site.accounts import said
    from parties.site.messages import OPEN
    from parties.site.settings import configuration
    from parties.site.state import State

    state = State.found(configuration(site).state)
    journal = state.journal(reading=True)
    if head is not None and not journal.holds(head.strip().lower()):
        raise InputError(
            f"{journal.path} has no line with the hash {head:.80}: lines were taken off its end, or an older copy was "
            "put back; put back the newest copy, without which nobody knows what was spent"
        )
    if verify:
        print(f"{len(journal.lines)} lines, none of them missing or changed; the last one has the hash {journal.head}")
        return
    if show is not None:
        if show > len(journal.lines):
            raise InputError(f"--show must be at most {len(journal.lines)}, as many lines as there are, got {show}")
        line = journal.lines[show - 1]
        opened = state.answers / f"{line.get('key')}{OPEN}"
        print(json.dumps({**line, **({"answer": plain(opened.read_bytes())} if opened.exists() else {})}, indent=2))
        return
    if not journal.lines:
        print("nothing has happened here yet")
    for number, line in enumerate(journal.lines, 1):
        print(f"{number:>5}  {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(line['time']))}  {said(line)}")


@party_app.command()
def spent(site: SiteFile, as_json: AsJson = False) -> None:
    """Print what the table has spent of each allowance, under all plans together."""
    from parties.site.settings import Settings
    from scenarios.deployment.site_texts import spent_by

    settings = Settings.load(site)
    tell(as_json, {"table": settings.data.table, "accounts": spent_by(settings)})


@party_app.command("same-table")
def same_table(
    site: SiteFile, other: Annotated[str, Argument(metavar="TABLE", help="What the table was called before.")]
) -> None:
    """Say that this site's table is one that is known by another name: both spend one allowance from now on."""
    from parties.site.settings import Settings
    from parties.site.state import Identity, State

    settings = Settings.load(site)
    state = State.found(settings.state)
    with state.owned():
        Identity(state.folder / "tables", state.journal()).settle_same(settings.data.table, other, getpass.getuser())
    print(f"the tables '{settings.data.table}' and '{other}' spend one allowance from now on")


@party_app.command("new-table")
def new_table(site: SiteFile) -> None:
    """Say that this site's table is none of those that are known, whatever rows they share: it has an own allowance."""
    from parties.site.settings import Settings
    from parties.site.state import Identity, State

    settings = Settings.load(site)
    state = State.found(settings.state)
    with state.owned():
        others = Identity(state.folder / "tables", state.journal()).settle_new(settings.data.table, getpass.getuser())
    print(f"the table '{settings.data.table}' is another one than {', '.join(others) or 'any'}")


@party_app.command("newest-state")
def newest_state(site: SiteFile) -> None:
    """Say that this copy of the state is the newest: nothing was spent since it was made, and no other will be served.

    For a site that has moved to another machine. What an older copy has forgotten would be spent twice.
    """
    from parties.site.settings import configuration
    from parties.site.state import State

    state = State.found(configuration(site).state)
    with state.owned():
        state.settle_newest(getpass.getuser())
    print(f"{state.folder} is served from now on; never serve another copy of it")


def _loaded(site: Path) -> tuple[Settings | SecondSettings, Agreement]:
    from federation.signed_messages.agreement import Agreement
    from parties.site.settings import configuration

    settings = configuration(site)
    return settings, Agreement.load(settings.plan)


def _outlook(site: Path) -> Outlook:
    from parties.site.settings import SecondSettings
    from scenarios.deployment.site_texts import outlook, outlook_of_second

    settings, agreement = _loaded(site)
    return (
        outlook_of_second(settings, agreement) if isinstance(settings, SecondSettings) else outlook(settings, agreement)
    )


def _decide(site: Path, name: str | None, state: str) -> None:
    from parties.site.policy import Approvals
    from parties.site.state import State
    from scenarios.deployment.site_texts import decided

    settings, agreement = _loaded(site)
    approvals = Approvals(State.found(settings.state).folder / "approvals", settings.policy.approve)
    if settings.policy.approve == "plan":
        approvals.asked(agreement.digest, None)
        name = name or approvals.asked(agreement.digest, None).id
    print(decided(approvals.decide(name, state, getpass.getuser())))
