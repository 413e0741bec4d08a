"""What is drawn of curves: intervals within what a metric can have, and points in their place where splits are few."""

import itertools

import numpy as np
import pytest
from support.figure_rows import rows

from scenarios.reports.axes import explanations
from scenarios.reports.figures import figures, plots


def whiskers(axes):
    """The ends of all intervals."""
    return [end for lines in axes.containers for bars in lines[2] for end in np.concatenate(bars.get_segments())[:, 1]]


def test_intervals_end_where_the_metric_does():
    made = rows()
    for row in made:
        row["value"] = min(0.99, 0.9 + 0.1 * row["split"])
    (axes,) = figures(made, "t")["accuracy"].axes
    ends = whiskers(axes)
    assert max(ends) == 1.0
    assert min(ends) >= 0.0


@pytest.mark.parametrize("epsilons", [(1.0,), (1.0, 10.0)])
def test_two_splits_are_points_and_no_interval(epsilons):
    made = [row for row in rows(epsilons, ("v",), references=False) if row["split"] < 2]
    (axes,) = figures(made, "t")["accuracy"].axes
    points = [line for line in axes.lines if line.get_marker() == "."]
    place = 0 if len(epsilons) == 1 else 1
    found = sorted(value for line in points for value in line.get_data()[place])
    means = [
        np.mean([row["value"] for row in made if (row["epsilon"], row["split"]) == (epsilon, split)])
        for epsilon in epsilons
        for split in (0, 1)
    ]
    assert found == pytest.approx(sorted(means))
    assert "points beside a mean: its two splits, too few for an interval" in explanations(plots(made)["accuracy"])
    three = plots(rows(epsilons))["accuracy"]
    assert not any("two splits" in line for line in explanations(three))
    assert any("95 % interval" in line for line in explanations(three))


def test_names_above_their_rows_cover_no_dot_and_no_other_name():
    found = figures(rows((1.0,), [f"{'v' * 90}{i}" for i in range(12)], references=False), "t")["accuracy-all"]
    found.draw_without_rendering()
    (axes,) = found.axes
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 12
    assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
    places = [axes.transData.transform((0.0, row))[1] for row in range(12)]
    assert all(box.y0 > place + 4 for box, place in zip(boxes, places, strict=True))
    assert all(box.y1 < place - 4 for box, place in zip(boxes[1:], places, strict=False))
    assert all(axes.get_window_extent().x1 > box.x1 for box in boxes)


def test_intervals_and_points_of_splits_are_in_the_picture():
    for splits in (2, 3):
        made = [row for row in rows(variants=("v",), references=False) if row["split"] < splits]
        for row in made:
            row["value"] = 0.4 + row["split"] / 10
        (axes,) = figures(made, "t")["accuracy"].axes
        low, high = axes.get_ylim()
        seen = [*whiskers(axes), *(value for line in axes.lines for value in line.get_ydata())]
        assert low < min(seen) < max(seen) < high


def test_one_split_has_neither():
    made = [row for row in rows() if row["split"] == 0]
    (axes,) = figures(made, "t")["accuracy"].axes
    assert not [line for line in axes.lines if line.get_marker() == "."]
    assert not any("interval" in line or "splits" in line for line in explanations(plots(made)["accuracy"]))
