"""What a server can try against a masked sum: each attack reads a naive party's part, and none of ours."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from support.masked_sums import QUESTION, Gullible, World, parts

from aggregator.secure_aggregation.server import AddingServer
from federation.contract.errors import InputError, QuorumError
from federation.contract.randomness import NoiseBits
from federation.contract.trust import TrustTerms
from federation.mechanisms.noise.additive import calibrate_laplace
from federation.mechanisms.sums import shares
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation import messages
from federation.secure_aggregation.masks import encoded
from federation.secure_aggregation.messages import (
    AGREE,
    KEYS,
    MASKED,
    PAIR,
    SELF,
    SHARES,
    UNMASK,
    Keys,
    Letters,
    Masked,
    Table,
    as_cells,
    keys_width,
)
from federation.secure_aggregation.plan import SumPlan, SumTerms, planned
from parties.secure_aggregation import masking
from parties.secure_aggregation.masking import MaskedAnswers, Own
from parties.secure_aggregation.party import MaskedParty, ProcessMemory, UnmaskingServer
from scenarios.simulated.secure_aggregation import enrolled, masked_total, uploading_parties

VICTIM = 1


def two_servers(parties: int, quorum: float, absent: float = 0.0):
    """The parties' keys and list, the helper server's key, the terms and the plan of a sum with two servers."""
    held, roster = enrolled(parties)
    key = X25519PrivateKey.generate()
    terms = SumTerms(roster, TrustTerms(len(roster), servers="two"), keys.public(key))
    plan = planned(QUESTION, roster, 3, TrustTerms(len(roster), quorum, servers="two"), absent, terms.second)
    return held, roster, key, terms, plan


def asked_for_masks(first: AddingServer, second: UnmaskingServer, answers: Mapping[int, bytes], plan: SumPlan) -> None:
    """The first server takes these answers, and shows the second one their receipts."""
    for number, answer in answers.items():
        first.take(number, answer)
    for receipts in first.receipts():
        second.take(plan, receipts)


def told(world: World, asked: Iterable[int], live: Sequence[bool]) -> None:
    """Parties are told who is counted, and say what they know of whom."""
    if world.plan.signed:
        world.unmask(asked, world.agree(asked, live))
    else:
        for number in asked:
            world.ask(UNMASK, number, world.obeyed(number, live))


def with_threshold(threshold: int):
    return lambda plan: replace(plan, threshold=threshold)


def told_apart(world: World, split: int) -> tuple[bytes | None, bytes | None]:
    """Some neighbours are told that the victim lives, the others that it does not: its two secrets, where readable."""
    world.honestly(MASKED)
    others = [number for number in range(world.plan.parties) if number != VICTIM]
    told(world, others[:split], world.live())
    told(world, others[split:], world.live(but=[VICTIM]))
    return world.secret(VICTIM, SELF), world.secret(VICTIM, PAIR)


def test_both_secrets_of_one_party_from_two_halves_of_its_neighbours() -> None:
    naive = World(11, "semi_honest", terms=Gullible, changed=with_threshold(5))
    own, pair = told_apart(naive, 5)
    assert own is not None
    assert (naive.read(VICTIM, own, pair) == naive.parts[VICTIM]).all()
    for split in (0, 5, 10):
        assert None in told_apart(World(11), split)


def test_a_plan_that_would_allow_it_is_refused() -> None:
    assert World(11, changed=with_threshold(5)).ask(KEYS, VICTIM, b"{}") is None
    world = World(11, changed=with_threshold(5))
    with pytest.raises(InputError, match="7"):
        world.parties[VICTIM].answer(world.plan.digest, KEYS, world.plan.packed())


class WithoutQuorum(MaskedAnswers):
    """Believes that all but one are absent."""

    def _take_live(self, counted: int, near: Mapping[int, bool]) -> None:
        self._near = near


def alone(world: World) -> bytes | None:
    """All but the victim are declared absent; each of the others is told so."""
    world.honestly(MASKED)
    only = world.live(but=[number for number in range(world.plan.parties) if number != VICTIM])
    for number in range(world.plan.parties):
        if number != VICTIM:
            if world.plan.signed:
                world.ask(AGREE, number, world.living(number, only))
            else:
                world.ask(UNMASK, number, world.obeyed(number, only))
    return world.secret(VICTIM, SELF)


def test_all_but_the_victim_declared_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert alone(World(11)) is None
    assert alone(World(11, "semi_honest")) is None
    monkeypatch.setattr("parties.secure_aggregation.party.MaskedAnswers", WithoutQuorum)
    naive = World(11, "semi_honest")
    own = alone(naive)
    theirs = {number: naive.secret(number, PAIR) for number in range(11) if number != VICTIM}
    assert own is not None
    assert (naive.read(VICTIM, own, None, theirs) == naive.parts[VICTIM]).all()


def party_with(world: World, number: int, memory) -> MaskedParty:
    return MaskedParty(number, world.held[number], world.terms, memory, lambda plan: world.parts[number])


def two_lists(world: World, forgetting: bool = False) -> tuple[bytes | None, bytes | None]:
    """The same parties are asked about two lists of who is counted; those who forget do not know of the first."""
    world.honestly(MASKED)
    everybody = [number for number in range(world.plan.parties) if number != VICTIM]
    records = {number: world.parties[number]._memory.load(world.plan.digest) for number in everybody}
    for live in (world.live(), world.live(but=[VICTIM])):
        world.unmask(everybody, world.agree(everybody, live))
        for number in everybody if forgetting else ():
            memory = ProcessMemory()
            memory.save(world.plan.digest, records[number])
            world.parties[number] = party_with(world, number, memory)
    return world.secret(VICTIM, SELF), world.secret(VICTIM, PAIR)


def test_two_lists_of_survivors() -> None:
    """To a party that restarts between them: `tests/parties/site/test_secure_aggregation.py`."""
    own, pair = two_lists(World(11))
    assert own is not None
    assert pair is None
    # A party that has not kept what it signed reveals both secrets of its neighbour.
    naive = World(11)
    own, pair = two_lists(naive, forgetting=True)
    assert own is not None
    assert (naive.read(VICTIM, own, pair) == naive.parts[VICTIM]).all()


def substituted(world: World) -> np.ndarray | None:
    """The server takes the place of all neighbours: it knows all masks and reads all letters."""
    plan = world.plan
    world.honestly(KEYS)
    secret = X25519PrivateKey.generate()
    fake = keys.public(secret)
    near = masking.neighbours(plan, VICTIM).tolist()
    cell = Keys(fake, fake, bytes(64) if plan.signed else b"").packed()
    answer = world.ask(SHARES, VICTIM, Table(np.array(near), as_cells([cell] * len(near), keys_width(plan))).packed())
    if answer is None:
        return None
    letters, theirs, found, back = Letters.read(answer, plan).letters, {}, {}, []
    for number, letter in zip(letters.numbers.tolist(), letters.cells, strict=True):
        common = keys.shared(secret, Keys.read(world.told[KEYS][VICTIM], plan).letters)
        opened = keys.opened(keys.letter_keys(common, plan.digest, VICTIM, number)[0], VICTIM, number, letter.tobytes())
        found[number] = opened[:36]
        theirs[number] = secret.private_bytes_raw()
        back.append(keys.sealed(keys.letter_keys(common, plan.digest, number, VICTIM)[0], number, VICTIM, bytes(72)))
    world.ask(MASKED, VICTIM, Table(letters.numbers, as_cells(back, 88)).packed())
    return world.read(VICTIM, world.secret(VICTIM, SELF, found), None, theirs)


def test_substituted_keys() -> None:
    naive = World(11, "semi_honest")
    assert (substituted(naive) == naive.parts[VICTIM]).all()
    assert substituted(World(11)) is None


def withheld(world: World, included: list[int], gone: list[int]) -> tuple[bytes | None, dict[int, bytes | None]]:
    """The victim gets letters of few neighbours only; the `gone` of them are declared absent. ONE list of survivors.

    Party 0 colludes. What is known of the victim's own secret, and of those behind the masks that it shares.
    """
    world.honestly(SHARES)
    record = world.parties[0]._memory.load(world.plan.digest)
    corrupt = {0: keys.derived(record.root, world.plan.digest, "masks")}
    everybody = range(world.plan.parties)
    for number in everybody:
        senders = included if number == VICTIM else [one for one in everybody if one not in (number,)]
        world.ask(MASKED, number, world.letters_to(number, senders))
    live = world.live(but=gone)
    told(world, [number for number in everybody if number not in (*gone, VICTIM)], live)
    return world.secret(VICTIM, SELF), corrupt | {number: world.secret(number, PAIR) for number in gone}


def test_withheld_letters_with_one_list_of_survivors() -> None:
    naive = World(11, "semi_honest", quorum=0.8)
    own, pairs = withheld(naive, included=[0, 2, 3], gone=[2, 3])
    assert own is not None
    assert (naive.read(VICTIM, own, None, pairs) == naive.parts[VICTIM]).all()
    world = World(11, quorum=0.8)
    assert world.plan.threshold == 7
    enough = [0, 2, 3, 4, 5, 6, 7]
    # Only those revealed it whose masks hide the victim, and two of them are said to be gone.
    assert withheld(world, included=enough, gone=[2, 3])[0] is None
    assert withheld(World(11, quorum=0.8), included=enough[:-1], gone=[])[0] is None  # the victim has sent nothing


class AskedAgain(MaskedParty):
    """Answers the third query as often as it is asked, under the same keys, with fresh noise."""

    def answer(self, digest: bytes, query: int, question: bytes) -> bytes:
        record = self._memory.load(digest)
        if query != MASKED or len(record.asked) < 3:
            return super().answer(digest, query, question)
        fresh = encoded(self._contribute(SumPlan.read(record.asked[0])))
        answers = MaskedAnswers(SumPlan.read(record.asked[0]), self._own, record.root, fresh)
        return [answers.answer(one) for one in (*record.asked[:2], question)][-1]


def noisy(number: int, plan: SumPlan) -> np.ndarray:
    return (1000 * (number + 1) + np.random.default_rng().integers(-50, 50, 3)).astype(np.int64)


def again(world: World) -> np.ndarray | None:
    """What the server learns of the victim's noise by asking its masked integers twice."""
    world.honestly(MASKED)
    first = Masked.read(world.told[MASKED][VICTIM], world.plan).vector
    second = world.ask(MASKED, VICTIM, world.letters_to(VICTIM, masking.neighbours(world.plan, VICTIM).tolist()))
    return None if second is None else (Masked.read(second, world.plan).vector - first).view(np.int64)


def test_a_query_asked_again() -> None:
    naive = World(11, contribute=noisy)
    naive.parties[VICTIM] = AskedAgain(
        VICTIM, naive.held[VICTIM], naive.terms, ProcessMemory(), lambda plan: noisy(VICTIM, plan)
    )
    read = again(naive)
    assert np.abs(read).max() < 100  # the difference of two draws of noise, in clear
    assert read.any()
    assert not again(World(11, contribute=noisy)).any()  # the same bytes


def after_an_abort(contribute) -> np.ndarray:
    """A sum over all parties, and one without the victim: what lies between."""
    held, roster = enrolled(11)
    terms, trust = SumTerms(roster, TrustTerms(len(roster))), TrustTerms(len(roster), 0.8)
    own = [
        MaskedParty(n, key, terms, ProcessMemory(), lambda plan, n=n: contribute(n, plan)) for n, key in enumerate(held)
    ]
    whole, without = (
        masked_total(planned(QUESTION, roster, 3, trust, 0.1), terms, own, silent).values
        for silent in ({}, {MASKED: [VICTIM]})
    )
    return whole - without


def test_the_same_noisy_parts_after_an_abort() -> None:
    kept = {number: noisy(number, None) for number in range(11)}
    assert (after_an_abort(lambda number, plan: kept[number]) == kept[VICTIM]).all()
    drawn = []

    def fresh(number: int, plan: SumPlan) -> np.ndarray:
        drawn.append(noisy(number, plan))
        return drawn[-1]

    between = after_an_abort(fresh)
    assert len(drawn) == 22  # a part is drawn anew for each sum
    assert not any((between == part).all() for part in drawn)


def copied(world: World) -> np.ndarray | None:
    """Party 0 colludes, and signs party 2's public key as its own: do the masks of party 1, between them, cancel?"""
    plan = world.plan
    world.honestly(KEYS)
    theirs = Keys.read(world.told[KEYS][2], plan)
    world.parties[0]._memory = ProcessMemory()
    own = Own(0, world.held[0], world.roster)
    corrupt = MaskedAnswers(plan, own, bytes(32), np.zeros(3, dtype=np.uint64))
    mine = Keys.read(corrupt.answer(plan.packed()), plan)
    told = replace(mine, masks=theirs.masks)
    signed = keys.signature(own.key, plan.digest, "keys", 0, told.letters + told.masks)
    world.told[KEYS][0] = replace(told, signature=signed).packed()
    for number in range(3):
        near = [one for one in range(3) if one != number]
        question = Table(np.array(near), as_cells([world.told[KEYS][one] for one in near], keys_width(plan))).packed()
        answer = corrupt.answer(question) if number == 0 else world.ask(SHARES, number, question)
        world.told.setdefault(SHARES, {})[number] = answer
    for number in (0, 1, 2):
        question = world.letters_to(number, [one for one in range(3) if one != number])
        world.told.setdefault(MASKED, {})[number] = (
            corrupt.answer(question) if number == 0 else world.ask(MASKED, number, question)
        )
    live = world.live()
    signed = world.agree([1, 2], live) | {0: keys.signature(own.key, plan.digest, "live", 0, keys.live_digest(live))}
    world.unmask([2], signed)
    secret = world.secret(VICTIM, SELF, {0: corrupt._opened[VICTIM][:36]})
    masked = Masked.read(world.told[MASKED][VICTIM], plan).vector
    return (masked - keys.stream(secret, 3)).view(np.int64)


def test_copied_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = World(3, quorum=1.0, absent=0.0)
    assert (copied(ours) != ours.parts[VICTIM]).all()
    monkeypatch.setattr(keys, "mask_key", lambda common, digest, one, other: keys.derived(common, digest, "mask"))
    naive = World(3, quorum=1.0, absent=0.0)
    assert (copied(naive) == naive.parts[VICTIM]).all()


def copied_upload() -> tuple[np.ndarray, np.ndarray]:
    """Party 0 signs what party 1 has uploaded: the total, and the true parts."""
    held, roster, key, terms, plan = two_servers(3, 1.0)
    values = parts(3, 3)
    parties = uploading_parties(held, terms, lambda number, plan: values[number])
    answers = [party.answer(plan.packed()) for party in parties]
    copy = messages.Uploaded.read(answers[VICTIM], plan)
    signature = keys.signature(held[0], plan.digest, messages.SAYS, 0, copy.key)
    answers[0] = replace(copy, signature=signature).packed()
    first, second = AddingServer(plan, roster), UnmaskingServer(key, terms, ProcessMemory())
    asked_for_masks(first, second, dict(enumerate(answers)), plan)
    return first.total(second.masks(plan, first.counted())).values, values


def test_copied_uploads_to_two_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    total, values = copied_upload()
    assert (total != 2 * values[1] + values[2]).all()
    naive = lambda common, plan, number, key: keys.derived(common, plan.digest, messages.SAYS, key)  # noqa: E731
    monkeypatch.setattr("parties.secure_aggregation.party.mask_key", naive)
    total, values = copied_upload()
    assert (total == 2 * values[1] + values[2]).all()  # the victim counts twice


def test_a_second_server_that_tries_what_a_part_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows the mask, and of a thousand parties' shares of Laplace noise nearly all are 0."""
    held, _, key, terms, plan = two_servers(3, 1.0)
    fresh = X25519PrivateKey.generate()
    monkeypatch.setattr("parties.secure_aggregation.party.X25519PrivateKey", SimpleNamespace(generate=lambda: fresh))
    noise = calibrate_laplace(l1_sensitivity=1.0, dimension=3, epsilon=1.0)
    share = shares.draw(noise, 1000, NoiseBits(1, "guessed", VICTIM), draws=1)[0]
    uploads = {}
    for label in (-1, 1):
        parties = uploading_parties(held, terms, lambda number, plan, label=label: 2**20 * label + share)
        uploads[label] = messages.Uploaded.read(parties[VICTIM].answer(plan.packed()), plan)
    assert uploads[-1].receipt == uploads[1].receipt  # whatever the part is
    # A receipt with a hash of what was sent, as one might have it, tells the label.
    common = keys.shared(key, uploads[1].key)
    mask = keys.stream(messages.mask_key(common, plan, VICTIM, uploads[1].key), 3)
    seen = sha256(uploads[1].vector).digest()
    tried = {label: mask + encoded(np.full(3, 2**20 * label)) for label in (-1, 1)}
    assert [label for label, vector in tried.items() if sha256(vector).digest() == seen] == [1]


def colluding(world: World, corrupt: list[int]) -> tuple[bytes | None, bytes | None]:
    """What corrupt neighbours know of the victim's secrets, without asking anybody else."""
    world.honestly(MASKED)
    letters = {number: world.parties[number]._running[world.plan.digest][1]._opened[VICTIM] for number in corrupt}
    own = world.secret(VICTIM, SELF, {number: letter[:36] for number, letter in letters.items()})
    return own, world.secret(VICTIM, PAIR, {number: letter[36:] for number, letter in letters.items()})


def test_a_neighbourhood_of_corrupt_parties() -> None:
    naive = World(11, terms=Gullible, changed=with_threshold(2))
    own, pair = colluding(naive, [0, 2])
    assert own is not None
    assert (naive.read(VICTIM, own, pair) == naive.parts[VICTIM]).all()
    assert colluding(World(11), [0, 2]) == (None, None)
    assert World(11).plan.colluding == 2  # as many as are planned for


def test_two_servers_tell_the_masks_of_one_list_only() -> None:
    held, roster, key, terms, plan = two_servers(10, 0.8, 0.1)
    parties = uploading_parties(held, terms, lambda number, plan: parts(10, 3)[number])
    answers = [party.answer(plan.packed()) for party in parties]
    memory = ProcessMemory()

    def masks(numbers) -> np.ndarray:
        first, second = AddingServer(plan, roster), UnmaskingServer(key, terms, memory)  # restarted each time
        asked_for_masks(first, second, {number: answers[number] for number in numbers}, plan)
        return second.masks(plan, np.packbits([n in numbers for n in range(10)], bitorder="little").tobytes())

    with pytest.raises(QuorumError, match="7"):
        masks(range(7))
    first = masks(range(9))
    assert first.any()
    with pytest.raises(InputError):
        masks(range(10))
    naive = memory.load(plan.digest)
    memory._records.clear()  # a server that forgets: the difference of two answers is one party's mask
    mask = masks(range(10)) - first
    told = messages.Uploaded.read(answers[9], plan)
    assert naive is not None
    assert ((told.vector - mask).view(np.int64) == parts(10, 3)[9]).all()
