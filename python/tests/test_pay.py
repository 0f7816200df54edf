# SPDX-License-Identifier: Apache-2.0
"""Money: shares against exact arithmetic."""
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fds


def exact_shares(values, amount, policy="clip"):
    """c phi_i / sum phi, in fractions; clip: of max(phi, 0)."""
    weights = [Fraction(v) if policy == "signed" else max(Fraction(v), Fraction(0)) for v in values]
    return [Fraction(amount) * w / sum(weights) for w in weights]


def largest_remainder(shares, unit):
    """Units of each: rounded down, and one more for the largest remainders."""
    whole = [share // unit for share in shares]
    left = int(sum(shares) / unit) - sum(whole)
    order = sorted(range(len(shares)), key=lambda i: (whole[i] * unit - shares[i], i))
    return [whole[i] + (1 if i in order[:left] else 0) for i in range(len(shares))]


values_list = st.lists(st.integers(-1000, 1000).map(lambda k: k / 1024), min_size=2, max_size=20)


@settings(deadline=None, max_examples=60)
@given(values_list.filter(lambda v: max(v) > 0), st.integers(1, 10**8))
def test_one_prediction_is_divided_by_the_largest_remainder(values, cents):
    amount = Decimal(cents).scaleb(-2)
    frame = fds.pay(fds.Result(values, exact=True), amount)
    assert sum(frame["share"]) == amount
    expected = largest_remainder(exact_shares(values, Fraction(cents)), 1)
    assert [int(share * 100) for share in frame["share"]] == expected
    assert all(share >= 0 and share.as_tuple().exponent == -2 for share in frame["share"])


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.integers(0, 2**32), st.integers(1, 5000))
def test_totals_of_many_predictions_are_within_a_unit(predictions, seed, cents):
    values = np.random.default_rng(seed).integers(1, 1000, (predictions, 4)) / 1024
    amount = Decimal(cents).scaleb(-2)
    result = fds.Result(values, exact=True)
    frame = fds.pay(result, amount)
    for k in range(len(values)):
        assert sum(frame["share"].iloc[4 * k:4 * k + 4]) == amount
    total = fds.pay(result, amount, summary=True)
    truth = np.sum([exact_shares(v, Fraction(cents)) for v in values], axis=0)
    assert sum(total["share"]) == amount * len(values)
    assert all(abs(share * 100 - Decimal(float(t))) < Decimal("1.0001") for share, t in zip(total["share"], truth))


@settings(deadline=None, max_examples=30)
@given(values_list.filter(lambda v: sum(v) > 0.06 * sum(map(abs, v))), st.integers(1, 10**6))
def test_signed_shares_may_be_negative(values, cents):
    frame = fds.pay(fds.Result(values, exact=True), Decimal(cents).scaleb(-2), policy="signed")
    assert sum(frame["share"]) == Decimal(cents).scaleb(-2) and frame.attrs["rule"] == "signed"
    for share, truth in zip(frame["share"], exact_shares(values, Fraction(cents), "signed")):
        assert abs(Fraction(share) * 100 - truth) <= 1


def test_a_total_is_divided_evenly_over_predictions():
    result = fds.Result(np.ones((3, 2)), exact=True)
    frame = fds.pay(result, total="1.00")
    assert sum(frame["share"]) == Decimal("1.00")
    assert {sum(part["share"]) for _, part in frame.groupby("input")} == {Decimal("0.33"), Decimal("0.34")}


@pytest.mark.parametrize("currency,amount,expected", [("JPY", "7", "4"), ("BHD", "1.001", "0.501"), ("EUR", "0.03", "0.02")])
def test_currencies_have_their_decimals(currency, amount, expected):
    frame = fds.pay(fds.Result([1.0, 1.0], exact=True), amount, currency=currency)
    assert frame["share"].iloc[0] == Decimal(expected) and frame.attrs["currency"] == currency


def test_providers_and_groups_are_paid():
    r = fds.Result([0.5, 0.25, 0.25], providers=["P", "Q", "P"], player_labels=["x", "y", "y"], exact=True)
    by = fds.pay(r, "100", by="provider")
    assert dict(zip(by["provider"], by["share"])) == {"P": Decimal("75.00"), "Q": Decimal("25.00")}
    groups = fds.pay(r, "100", by="group")
    assert dict(zip(groups["group"], groups["share"])) == {"x": Decimal("50.00"), "y": Decimal("50.00")}
    own = fds.pay(fds.Result([0.5, 0.25, 0.25], groups=["u", "v", "u"], player_labels=[0, 0, 0], exact=True), "100",
                  by="group")
    assert own["share"].tolist() == [Decimal("75.00"), Decimal("25.00")]


def test_errors_of_values_become_errors_of_money():
    r = fds.Result([0.6, 0.4], stderr=[0.01, 0.01])
    signed = fds.pay(r, "100.00", policy="signed")
    assert signed["error"].tolist() == pytest.approx([1.0, 1.0])
    assert signed.attrs["misallocated"] > 0
    unknown = fds.pay(fds.Result([0.6, 0.4]), "100.00")
    assert unknown["error"].isna().all() and unknown.attrs["misallocated"] is None


def test_the_order_of_players_does_not_matter():
    r = fds.Result([0.1, 0.7, 0.2], names=["a", "b", "c"], exact=True)
    one, other = (fds.pay(x, "10.01").set_index("player")["share"].to_dict() for x in (r, r.sort()))
    assert one == other


def test_nobody_above_zero_is_paid_evenly():
    frame = fds.pay(fds.Result([-1.0, -2.0], exact=True), "1.00")
    assert frame["share"].tolist() == [Decimal("0.50")] * 2 and frame.attrs["rule"] == "evenly"


def test_payments_are_saved(tmp_path):
    fds.pay(fds.Result([0.5, 0.5], names=["ä", "b"], exact=True), "3.00", save=tmp_path / "pay.csv")
    assert "ä" in (tmp_path / "pay.csv").read_text() and "1.50" in (tmp_path / "pay.csv").read_text()


@pytest.mark.parametrize("amount,how,text", [
    (None, {}, "`amount`"), (100.0, {}, "Decimal"), (True, {}, "Decimal"), ("abc", {}, "amount"), ("1", dict(total="2"), ""),
    ("1.005", dict(currency="EUR"), "EUR"), ("1", dict(currency="XXZ"), "XXZ"), ("1", dict(policy="clop"), "clip"),
    ("1", dict(by="provider"), "provider"), ("-1", {}, "amount"), ("1", dict(by="providr"), "provider"),
])
def test_wrong_payments_are_refused(amount, how, text):
    with pytest.raises(fds.Error) as caught:
        fds.pay(fds.Result([0.5, 0.5]), amount, **how)
    assert text in str(caught.value)


def test_some_of_the_players_are_not_paid():
    with pytest.raises(fds.UsageError, match="2 of 3 players"):
        fds.pay(fds.Result([1.0, 2, 3])[:2], "1.00")


def test_values_that_are_no_numbers_are_refused():
    with pytest.raises(fds.Error):
        fds.pay(fds.Result([1.0, np.nan]), "1.00")
