"""View functions that copy: `permute_copy` is `permute`, and the result has memory of its own.

In: arguments of the view function. Out: copies of the views. Called by users.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.ops import joining, movement, slicing
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_complex import view_as_complex, view_as_real
from tracejit.core.ops.pointwise_record import clone
from tracejit.core.ops.types import dtype


def _copying(name: str, view: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        found = view(*arguments, **keywords)
        return tuple(map(clone, found)) if isinstance(found, (tuple, list)) else clone(found)

    call.__name__ = call.__qualname__ = f"{name}_copy"
    call.__doc__ = f"""Return a copy of what `{name}` shows, in memory of its own.

    Arguments, shapes and errors are those of `{name}`; the dtype is that of the input.
    """
    return call


def _of_method(name: str) -> Callable[..., Any]:
    return lambda input, *arguments, **keywords: getattr(input, name)(*arguments, **keywords)


def _slice(input: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    key = [slice(None)] * len(input.shape)
    key[dim] = slice(start, end, step)
    return input[tuple(key)]


def _view(input: Any, *asked: Any, **named: Any) -> Any:
    """Return a view in another dtype; in another shape, memory with gaps may be copied first."""
    asked = asked or tuple(named.values())
    return input.view(*asked) if isinstance(asked[0], dtype) else input.reshape(*asked)


alias_copy = _copying("alias", lambda input: input)
as_strided_copy = _copying("as_strided", slicing.as_strided)
detach_copy = _copying("detach", _of_method("detach"))
diagonal_copy = _copying("diagonal", slicing.diagonal)
expand_copy = _copying("expand", _of_method("expand"))
narrow_copy = _copying("narrow", slicing.narrow)
permute_copy = _copying("permute", movement.permute)
select_copy = _copying("select", slicing.select)
slice_copy = _copying("slice", _slice)
split_copy = _copying("split", joining.split)
split_with_sizes_copy = _copying("split_with_sizes", joining.split_with_sizes)
squeeze_copy = _copying("squeeze", movement.squeeze)
t_copy = _copying("t", movement.t)
transpose_copy = _copying("transpose", movement.transpose)
unbind_copy = _copying("unbind", joining.unbind)
unfold_copy = _copying("unfold", _of_method("unfold"))
unsqueeze_copy = _copying("unsqueeze", movement.unsqueeze)
view_copy = _copying("view", _view)
view_as_complex_copy = _copying("view_as_complex", view_as_complex)
view_as_real_copy = _copying("view_as_real", view_as_real)

method("narrow_copy")(narrow_copy)
