"""What is known of a world before anything is asked."""

from dataclasses import FrozenInstanceError, fields

import pytest

from aggregator.trial.plan import PublicNumbers, product


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((), 1),
        ((7,), 7),
        ((2, 3, 4), 24),
        ((5, 0), 0),
        ((2**40, 2**40), 2**80),
        ((None,), None),
        ((2, None, 3), None),
        ((0, None), None),
    ],
)
def test_a_product_is_known_where_all_its_sizes_are(sizes, expected):
    assert product(*sizes) == expected


def test_before_any_data_is_read_only_delta_is_known():
    numbers = PublicNumbers(1e-6)
    unknown = {one.name for one in fields(numbers) if getattr(numbers, one.name) is None}
    assert unknown == {
        "parties", "classes", "features", "public_rows", "bags", "smallest_bag", "largest_bag", "label_range",
        "common_bags", "rows", "attainable", "majority", "residual",
    }  # fmt: skip
    assert (numbers.delta, numbers.draws, numbers.rows_per_person) == (1e-6, 1, 0)
    with pytest.raises(FrozenInstanceError):
        numbers.delta = 0.5
