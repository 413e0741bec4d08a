"""What a party says in a masked sum, and where it stops."""

import numpy as np
import pytest
from support.masked_sums import World

from federation.contract.errors import InputError
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.messages import (
    AGREE,
    KEYS,
    MASKED,
    SHARES,
    UNMASK,
    Keys,
    Letters,
    Masked,
    Table,
    as_cells,
)
from federation.secure_aggregation.plan import KEY
from parties.secure_aggregation.masking import MaskedAnswers, Own

ME = 1


def refused(world: World, query: int, question: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        world.parties[ME].answer(world.plan.digest, query, question)


def keys_to_me(world: World, but: int | None = None, extra: int | None = None) -> Table:
    near = [number for number in range(11) if number not in (ME, but)] + ([] if extra is None else [extra])
    return Table(np.array(near), as_cells([world.told[KEYS][number] for number in near], 128))


def included(world: World, told: bytes) -> int:
    """How many masks are in what was sent."""
    return int.from_bytes(Masked.read(told, world.plan).included, "little").bit_count()


def after(query: int, adversary: str = "active") -> World:
    world = World(11, adversary)
    world.honestly(query)
    return world


def test_masks_hide_the_part_and_the_receipt_says_whose_they_are() -> None:
    world = after(MASKED)
    told = [Masked.read(world.told[MASKED][number], world.plan) for number in range(11)]
    assert all((one.vector != part.view(np.uint64)).all() for one, part in zip(told, world.parts, strict=True))
    assert all(one.included == b"\xff\x03" for one in told)
    selves = [keys.stream(keys.derived(root(world, number), world.plan.digest, "self"), 3) for number in range(11)]
    assert all(
        ((one.vector - own).view(np.int64) != part).all()
        for one, own, part in zip(told, selves, world.parts, strict=True)
    )
    total = sum(one.vector for one in told) - sum(selves)
    assert (total.view(np.int64) == world.parts.sum(axis=0)).all()  # the shared masks cancel


def root(world: World, number: int) -> bytes:
    return world.parties[number]._memory.load(world.plan.digest).root


def test_keys_with_false_signatures_are_no_neighbours() -> None:
    world = after(KEYS)
    table = keys_to_me(world)
    forged = table.cells.copy()
    forged[:3, -1] ^= 1
    letters = Letters.read(world.ask(SHARES, ME, Table(table.numbers, forged).packed()), world.plan).letters
    assert letters.numbers.tolist() == table.numbers[3:].tolist()
    for number in table.numbers.tolist():
        cells = [world.told[KEYS][other] for other in range(11) if other != number]
        near = np.array([other for other in range(11) if other != number])
        world.ask(SHARES, number, Table(near, as_cells(cells, 128)).packed())
    told = world.ask(MASKED, ME, world.letters_to(ME, table.numbers.tolist()))
    assert included(world, told) == 7  # what the three write is not read
    world = after(KEYS)
    table = keys_to_me(world)
    forged = table.cells.copy()
    forged[:4, -1] ^= 1
    refused(world, SHARES, Table(table.numbers, forged).packed(), "6 keys of neighbours that are theirs came, and 7")
    world = after(KEYS)
    swapped = Table(table.numbers, keys_to_me(world).cells[::-1])  # each key is that of another party
    refused(world, SHARES, swapped.packed(), "0 keys of neighbours")


def test_a_stranger_as_neighbour_ends_the_sum_and_keys_that_give_nothing_secret_are_left_out() -> None:
    world = after(KEYS)
    refused(world, SHARES, keys_to_me(world, but=0, extra=ME).packed(), "names a stranger")
    refused(world, SHARES, keys_to_me(world).packed(), "this sum is over")
    world = after(KEYS)
    table = keys_to_me(world)
    bad = Keys(bytes(KEY), bytes(KEY))
    signature = keys.signature(world.held[0], world.plan.digest, "keys", 0, bytes(2 * KEY))
    cells = [Keys(bad.letters, bad.masks, signature).packed(), *(cell.tobytes() for cell in table.cells[1:])]
    question = Table(table.numbers, as_cells(cells, 128)).packed()
    assert 0 not in Letters.read(world.ask(SHARES, ME, question), world.plan).letters.numbers


def test_too_few_letters_or_damaged_ones() -> None:
    world = after(SHARES)
    letters = Table.read(world.letters_to(ME, [0, 2, 3, 4, 5, 6, 7, 8]), 88, world.plan)
    damaged = letters.cells.copy()
    damaged[0, 0] ^= 1
    told = world.ask(MASKED, ME, Table(letters.numbers, damaged).packed())
    assert included(world, told) == 7
    world = after(SHARES)
    refused(world, MASKED, world.letters_to(ME, [0, 2, 3, 4, 5, 6]), "6 letters of neighbours came, and 7 are needed")


@pytest.mark.parametrize("but", [[ME], [2, 3, 4]])
def test_a_list_without_the_party_or_a_quorum_is_not_signed(but: list[int]) -> None:
    world = after(MASKED)
    refused(world, AGREE, world.living(ME, world.live(but)), "this party reveals nothing")


def test_a_list_without_the_party_is_not_signed_where_one_is_a_quorum() -> None:
    world = World(4, quorum=0.25, absent=0.0, colluding=0.0)
    assert world.plan.least == 1
    world.honestly(MASKED)
    refused(world, AGREE, world.living(ME, world.live([ME])), "this party reveals nothing")
    world = after(MASKED)
    assert world.ask(AGREE, ME, world.living(ME, world.live([3, 4])))  # of just a quorum


def test_who_obeys_a_server_reveals_one_share_of_each_and_nothing_below_a_quorum() -> None:
    world = after(MASKED, "semi_honest")
    question = world.obeyed(ME, world.live([3]))
    table = Table.read(world.ask(UNMASK, ME, question), 37, world.plan)
    assert table.cells[:, 0].tolist() == [int(number == 3) for number in table.numbers.tolist()]
    assert len(table.numbers) == 10
    world = after(MASKED, "semi_honest")
    refused(world, UNMASK, world.obeyed(ME, world.live([2, 3, 4])), "this party reveals nothing")


def test_a_living_neighbour_whose_letter_was_kept_back_is_not_signed_for() -> None:
    world = after(SHARES)
    for number in range(11):
        world.ask(MASKED, number, world.letters_to(number, [one for one in range(11) if one not in (number, 5)][:8]))
    refused(world, AGREE, world.living(ME, world.live()), "whose shares it kept back")


def test_too_few_signatures_those_of_another_list_and_ones_own_are_refused() -> None:
    world = after(MASKED)
    signed = world.agree([number for number in range(11) if number != 3], world.live(but=[3]))
    assert len(signed) == 10
    few = dict(list(signed.items())[:7])  # its own is among them
    refused(world, UNMASK, world.signatures(ME, few), "6 signatures of neighbours on who is counted came, and 7")
    world = after(MASKED)
    world.agree([ME], world.live())
    other = world.agree([number for number in range(11) if number not in (3, ME)], world.live(but=[3]))
    refused(world, UNMASK, world.signatures(ME, other), "0 signatures of neighbours")
    world = after(MASKED)
    signed = world.agree(range(11), world.live())
    own = [ME, *(number for number in range(11) if number != ME)][:7]
    question = Table(np.array(own), as_cells([signed[number] for number in own], 64)).packed()
    refused(world, UNMASK, question, "names a stranger")


def test_of_each_neighbour_one_kind_of_share_and_none_where_its_receipt_is_false_or_names_others() -> None:
    world = after(MASKED)
    signed = world.agree([number for number in range(11) if number != 3], world.live(but=[3]))
    table = Table.read(world.ask(UNMASK, ME, world.signatures(ME, signed)), 37, world.plan)
    assert dict(zip(table.numbers.tolist(), table.cells[:, 0].tolist(), strict=True)) == {
        number: int(number == 3) for number in range(11) if number != ME
    }
    world = after(MASKED)
    forged = bytearray(world.living(ME, world.live()))
    forged[2 + 4] ^= 1  # the first receipt's bits
    forged[2 + 70 : 2 + 74] = ME.to_bytes(4, "little")  # whose receipt the second is: none of its neighbours
    world.ask(AGREE, ME, bytes(forged))
    signed = world.agree([number for number in range(11) if number != ME], world.live())
    table = Table.read(world.ask(UNMASK, ME, world.signatures(ME, signed)), 37, world.plan)
    assert len(table.numbers) == 8


def test_no_share_of_a_neighbour_who_has_left_the_partys_mask_out() -> None:
    """What it is counted with then lacks a mask: with its own secret the server would have one more equation."""
    world = after(SHARES)
    without = 4
    for number in range(11):
        near = [other for other in range(11) if other != number and (number, other) != (without, ME)]
        world.ask(MASKED, number, world.letters_to(number, near))
    signed = world.agree(range(11), world.live())
    signed = {number: signature for number, signature in signed.items() if number != ME}
    table = Table.read(world.ask(UNMASK, ME, world.signatures(ME, signed)), 37, world.plan)
    assert sorted(table.numbers.tolist()) == [number for number in range(11) if number not in (ME, without)]


def test_equal_secrets_and_questions_give_equal_bytes() -> None:
    world = after(UNMASK)
    plan, own = world.plan, Own(ME, world.held[ME], world.roster)
    again = MaskedAnswers(plan, own, b"r" * 32, np.zeros(3, dtype=np.uint64))
    with pytest.raises(InputError):
        MaskedAnswers(plan, own, b"r" * 32, np.zeros(3, dtype=np.uint64)).answer(plan.packed()[:-1])
    other = MaskedAnswers(plan, own, b"r" * 32, np.zeros(3, dtype=np.uint64))
    assert again.answer(plan.packed()) == other.answer(plan.packed())
    question = keys_to_me(world).packed()
    assert again.answer(question) == other.answer(question)
