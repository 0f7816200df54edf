# SPDX-License-Identifier: Apache-2.0
"""Money for predictions, divided by values, exact to the smallest unit."""
from __future__ import annotations

import ctypes as c
import math
from decimal import Decimal
from typing import Any, Optional, Union

import numpy as np

from . import _lib
from ._call import Params
from .result import Result, pandas

Money = Union[str, int, Decimal]
ALL = c.c_size_t(-1).value


def money_text(value: Any, what: str) -> Optional[str]:
    """Money as text. A binary float is not an amount of money: 0.1 is not a tenth."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, float, np.floating)):
        raise _lib.UsageError(f"`{what}` must be a text, a Decimal or a whole number, such as \"100.00\" (got {value!r})")
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(int(value))


def pay(result: Result, amount: Optional[Money] = None, *, total: Optional[Money] = None,
        currency: Optional[str] = None, policy: str = "clip", by: str = "player", summary: bool = False,
        save: Any = None) -> Any:
    """Divides money for each prediction of a result among its players, in proportion to their values.

    amount: for each prediction; total: for all of them together. policy: "clip" (negative values earn nothing)
    or "signed" (they owe). by: "player", "provider" or "group". Returns a DataFrame: a row per prediction and payee
    (summary: per payee) with the `share` as a Decimal; shares add up to the amount exactly. `attrs` has the
    currency, the rule and how much is expected to go elsewhere than by the true values. save: also writes .csv,
    .json or .jsonl. docs/pay.md has the rules.

    >>> r = fds.Result([0.5, 0.25, -0.1], names=["A", "B", "C"], exact=True)
    >>> fds.pay(r, "100.00")["share"].tolist()
    [Decimal('66.67'), Decimal('33.33'), Decimal('0.00')]
    """
    given = {"amount": money_text(amount, "amount"), "total": money_text(total, "total"), "currency": currency,
             "policy": policy}
    if amount is None and total is None:
        raise _lib.UsageError("`amount` (for each prediction) or `total` (for all) is needed, for example \"100.00\"")
    params = Params("pay", {**given, "by": by})
    source = result._handle()
    payment = _lib.Handle.make("fds_pay", "fds_payment_free", source, params, keep=(source,))
    if save is not None:
        _lib.call("fds_payment_save", payment, _lib.encode(save))
    return table(payment, result, by, summary)


def table(payment: _lib.Handle, result: Result, by: str, summary: bool) -> Any:
    library, p = _lib.lib(), payment
    decimals, payees = library.fds_payment_decimals(p), library.fds_payment_payees(p)
    names = [_lib.text(library.fds_payment_payee(p, i)) for i in range(payees)]

    def money(units: int) -> Decimal:
        return Decimal(units).scaleb(-decimals)

    def rows(k: int) -> dict[str, Any]:
        errors = [library.fds_payment_error(p, k, i) for i in range(payees)]
        return {"payee": names, "value": [library.fds_payment_value(p, k, i) for i in range(payees)],
                "share": [money(library.fds_payment_share(p, k, i)) for i in range(payees)],
                "error": [round(error / 10**decimals, decimals + 4) for error in errors]}

    pd = pandas()
    several = [ALL] if summary else list(range(len(result._values)))
    frames = [pd.DataFrame(rows(k) if len(several) == 1 else {"input": result._inputs[k], **rows(k)}) for k in several]
    frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    if summary:
        frame = frame.drop(columns="value")
    frame = frame.rename(columns={"payee": by})
    lost = library.fds_payment_misallocated(p, ALL)
    frame.attrs.update(currency=_lib.text_or_none(library.fds_payment_currency(p)),
                       amount=money(library.fds_payment_amount(p, ALL)),
                       rule=_lib.text(library.fds_payment_rule(p, 0)),
                       misallocated=None if math.isnan(lost) else lost / 10**decimals)
    return frame
