"""The folder of a deployment, which nobody but its coordinator may read, and the files in it."""

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from aggregator.exchange.app import AGREEMENT, EXCHANGES, LEDGER, NODES, RELEASES, SIGNING_KEY, WORLD_PLAN
from aggregator.exchange.exchange import JOURNALS
from federation.contract.errors import InputError
from federation.contract.files import is_folder, read_text, write_lasting
from federation.signed_messages.aggregation_messages import roster_of
from federation.signed_messages.agreement import Agreement, Member, Second
from federation.signed_messages.keys import (
    ed25519_key_from_text,
    load_key,
    public_text,
    require_private,
    save_key,
    site_key_from_text,
)
from scenarios.deployment.certificates import make_authority, make_server
from scenarios.deployment.plans import Arrangements, Deployment, deployment
from scenarios.deployment.site_texts import numbers_of, who
from scenarios.reports.guarantee_page import template
from scenarios.settings.guarantees import in_lines
from scenarios.settings.loader import dump
from scenarios.settings.schema import Scenario

INVITATION, SCENARIO, README = "invitation.json", "scenario.yaml", "README.txt"
_ROOM = 2**18  # bytes that an exchange may have to write at a time, at least


@dataclass(frozen=True)
class Folder:
    """A folder that `federation deploy` has made, by its absolute path."""

    path: Path

    @classmethod
    def opened(cls, path: Path) -> "Folder":
        """One that is there. Raises `InputError` for any other folder, and for one that others may read."""
        folder = cls(path.absolute())
        if not (folder.path / INVITATION).exists():
            raise InputError(
                f"{path} is no folder of a deployment; make one: federation deploy SCENARIO {path} --superlink "
                "HOST:PORT --sites NAME,NAME,..."
            )
        require_private(folder.path)
        return folder

    @property
    def invitation(self) -> Agreement:
        """What sites are asked to agree to, without their keys."""
        return Agreement.load(self.path / INVITATION)

    @property
    def sealed(self) -> bool:
        """Whether the keys of all sites are there."""
        return (self.path / AGREEMENT).exists()

    @property
    def agreement(self) -> Agreement:
        """What sites have agreed to. Raises `InputError` before their keys are there, and where it was changed."""
        if not self.sealed:
            raise InputError(
                f"{self.path} has no plan yet; put the NAME.pub files of all sites in a folder and type: federation "
                f"deploy {self.path} --keys FOLDER"
            )
        found = Agreement.load(self.path / AGREEMENT)
        if found.invitation.digest != self.invitation.digest:
            raise InputError(
                f"{self.path / AGREEMENT} or {INVITATION} is not as it was sealed, and no site would answer to it; put "
                "back what sites were sent, or make a new deployment"
            )
        return found

    @property
    def signing_key(self) -> Ed25519PrivateKey:
        """What questions are signed with."""
        return load_key(self.path / SIGNING_KEY, Ed25519PrivateKey)  # type: ignore[type-abstract, unused-ignore]

    @property
    def ledger(self) -> Path:
        """What all exchanges have spent."""
        return self.path / LEDGER

    @property
    def nodes(self) -> Path:
        """By which ids the SuperLink knows the sites."""
        return self.path / NODES

    def require_room(self) -> None:
        """Raises `InputError` where the disk takes no more: whatever fails then fails for that."""
        probe = self.path / f"room{os.getpid()}"  # several may look at a time
        try:
            write_lasting(probe, bytes(_ROOM))
        except OSError as error:
            raise InputError(
                f"nothing more can be written to {self.path} ({error.strerror}); let this user write there, or free "
                "some room on that disk, and collect again, which goes on where this was"
            ) from error
        finally:
            for made in self.path.glob(f"{probe.name}*"):
                made.unlink()

    def exchange(self, number: str) -> Path:
        """The folder of an exchange."""
        return self.path / EXCHANGES / number

    def release(self, number: str) -> Path:
        """The folder of what an exchange has released."""
        return self.path / RELEASES / number

    @property
    def exchanges(self) -> list[str]:
        """The numbers of the exchanges that were begun, in order."""
        folder = self.path / EXCHANGES
        return sorted(one.name for one in folder.iterdir() if one.name.isdecimal()) if folder.exists() else []

    @property
    def journals(self) -> dict[str, str]:
        """By site the hash of the last line of its journal that has been told here."""
        folder = self.path / EXCHANGES / JOURNALS
        return {one.name: one.read_text() for one in sorted(folder.iterdir())} if folder.exists() else {}

    def seal(self, keys: Path) -> Agreement:
        """Put the sites' keys, files NAME.pub in a folder, in the plan, and write it down.

        Raises `InputError` for keys that are missing or cannot be read, and for a plan that has been sealed with other
        ones.
        """
        invitation = self.invitation
        if not is_folder(keys):
            raise InputError(f"--keys: there is no folder {keys}; name the one with the NAME.pub files of the sites")
        lacking = [one.name for one in invitation.members if not (keys / f"{one.name}.pub").exists()]
        if lacking:
            raise InputError(
                f"--keys: {keys} lacks {', '.join(f'{name}.pub' for name in lacking)}; each of them sends its own, "
                "which `federation party init` writes"
            )
        members = tuple(_member(site.name, keys / f"{site.name}.pub") for site in invitation.sites)
        second = invitation.second and _second(invitation.second.name, keys / f"{invitation.second.name}.pub")
        try:
            agreement = Agreement.model_validate({**invitation.model_dump(), "sites": members, "second": second})
        except ValueError as error:
            raise InputError(f"--keys: {error.errors()[0]['msg']}") from error  # type: ignore[attr-defined]
        if agreement.secure:
            roster_of(agreement)
        if self.sealed and self.agreement.digest != agreement.digest:
            raise InputError(
                f"{self.path / AGREEMENT} has been sealed with other keys, and sites may have approved it; make a new "
                "deployment for these"
            )
        write_lasting(self.path / AGREEMENT, _shown(agreement))
        return agreement


def make_folder(
    path: Path, scenario: Scenario, public: Path, known: Mapping[str, object], hosts: Sequence[str]
) -> tuple[Folder, Deployment]:
    """Make the folder of a deployment: keys, certificates, invitation and a page that says what to do next.

    `known` are the parts of `Arrangements` that need no keys. Raises `InputError` for a folder that is not empty, and
    as `deployment`; what was begun is then removed.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} is there already, and a deployment begins in a folder of its own; name another")
    made = not path.exists()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)
    folder = Folder(path.absolute())
    try:
        return folder, _filled(folder, scenario, public, known, hosts)
    except BaseException:
        for one in folder.path.iterdir():
            one.unlink()
        if made:
            folder.path.rmdir()
        raise


def _filled(
    folder: Folder, scenario: Scenario, public: Path, known: Mapping[str, object], hosts: Sequence[str]
) -> Deployment:
    copy = folder.path / f"public{public.suffix.lower()}"
    shutil.copyfile(public, copy)
    key = Ed25519PrivateKey.generate()
    save_key(folder.path / SIGNING_KEY, key)
    root = make_authority(folder.path, scenario.name)
    make_server(folder.path, scenario.name, hosts)
    arrangements = Arrangements(root=root, aggregator=public_text(key.public_key()), **known)  # type: ignore[arg-type]
    found = deployment(scenario, arrangements, copy)
    plain = scenario.to_plain()
    plain["data"]["auxiliary"] = copy.name
    write_lasting(folder.path / SCENARIO, dump(plain).encode())
    found.plan.save(folder.path / WORLD_PLAN)
    write_lasting(folder.path / INVITATION, _shown(found.agreement))
    write_lasting(folder.path / README, _readme(folder, found).encode())
    return found


def _member(name: str, path: Path) -> Member:
    """A site with the public keys in a file, in the one form that each has. Raises `InputError`."""
    first, _, second = read_text(path, "ask the site for another").strip().partition("\n")
    sums = public_text(ed25519_key_from_text(second.strip(), f"{path}, line 2")) if second else ""
    return Member(name=name, key=public_text(site_key_from_text(first.strip(), str(path))), sums=sums)


def _second(name: str, path: Path) -> Second:
    """A second server with the public keys in a file. Raises `InputError`."""
    first, _, masks = read_text(path, "ask for another").strip().partition("\n")
    if not re.fullmatch(r"[0-9a-f]{64}", masks.strip()):
        raise InputError(
            f"{path}, line 2: must be the key for masks of the second server '{name}', 64 hexadecimal digits; ask it "
            "for the file that `federation party init` has written"
        )
    return Second(name=name, key=public_text(site_key_from_text(first.strip(), str(path))), masks=masks.strip())


def _shown(agreement: Agreement) -> bytes:
    return (json.dumps(agreement.model_dump(mode="json"), indent=1, allow_nan=False) + "\n").encode()


def _readme(folder: Folder, found: Deployment) -> str:
    agreement = found.agreement
    host, _, port = agreement.superlink.rpartition(":")
    return template(README).render(
        agreement=agreement,
        names=[site.name for site in agreement.sites],
        folder=folder.path,
        invitation=INVITATION,
        plan=AGREEMENT,
        ledger=LEDGER,
        releases=RELEASES,
        variant=found.plan.variants[0].name,
        host=host,
        port=port,
        facts=[*in_lines(who(agreement)), *([numbers_of(agreement)] if agreement.secure else [])],
    )
