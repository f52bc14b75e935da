"""What a call with numbers shows: results with their types, compared plainly and captured.

In: functions and the values they are called with. Out: comparable outcomes, assertions. Called by
`test_numbers.py` and `test_number_arguments.py`.
"""

from __future__ import annotations

import tracejit as tj


def outcome(function, *args):
    """What a call shows: a result with its types, or the class of the exception."""
    try:
        return shown(function(*args))
    except Exception as error:
        return type(error).__name__


def shown(x):
    if isinstance(x, tj.Tensor):
        return f"{x.dtype} {x.tolist()!r}"
    if isinstance(x, (list, tuple)):
        return [type(x).__name__, *map(shown, x)]
    if isinstance(x, dict):
        return {k: shown(v) for k, v in x.items()}
    return f"{type(x).__name__} {x!r}"


def same(function, values, mode="graph", **options):
    """Calls with each value, twice around, show what the plain function shows."""
    captured = tj.script(function, mode=mode, **options)
    for value in [*values, *values]:
        given = value if isinstance(value, tuple) else (value,)
        assert outcome(captured, *given) == outcome(function, *given), given
    return captured.report()
