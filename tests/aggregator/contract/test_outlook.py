from aggregator.contract.session import Outlook, told


def test_variants_of_which_the_same_is_to_be_said_share_a_line():
    few, other = {1.0: Outlook(0.5, 40)}, {1.0: Outlook(2.0, 40)}
    lines = list(told({"a": few, "b": other, "c": dict(few)}, 5))
    assert [line.split(":")[0] for line in lines] == ["a, c", "b"]
    assert all("a constant answer may be as good" in line for line in lines)  # warnings, be the noise ever so loud
    assert ["louder than all that 5 parties" in line for line in lines] == [True, False]


def test_nothing_is_said_where_the_signal_is_loud_or_no_rule_is_known():
    assert list(told({"a": {1.0: Outlook(4.0, 3)}, "b": {}}, 5)) == []


def test_epsilons_with_their_numbers_stand_in_order():
    [line] = told({"a": {0.1: Outlook(0.01, 4000), 0.3: Outlook(0.03, 1200), 3.0: Outlook(3.5, 120)}}, 100)
    assert "epsilon 0.1, 0.3 the noise" in line
    assert "about 4000, 1200 parties" in line
    assert line.endswith(
        "at epsilon 3 a constant answer may be as good (signal to noise 3.5); to count on more it takes about 120 "
        "parties"
    )
