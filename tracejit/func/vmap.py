"""`vmap`: a function mapped over dimensions of its arguments.

In: a function of one sample. Out: a function of all of them at once. The function runs once, on
tensors that stand for all samples (`mapping.py`). Called by: users, and `jacobians.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.joining import cat
from tracejit.core.ops.movement import movedim
from tracejit.func.mapping import Mapping
from tracejit.random import get_rng_state, set_rng_state
from tracejit.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

_RANDOMNESS = ("error", "different", "same")


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error",
         *, chunk_size: int | None = None) -> Callable[..., Any]:
    """Map `func`, which takes and gives samples, over one more dimension of its tensors.

    in_dims     where that dimension is in each argument (None: it is the same for all samples): an
                int, or a tuple of ints, None and containers for containers
    out_dims    where it shall be in the results
    randomness  what `func` draws: "error", "different" or the "same" for each sample
    chunk_size  how many samples to compute at once

    Within `func` tensors have no values that Python could see: decisions on them and `.item()` are
    errors. A write of what differs between samples to a tensor that is not mapped over is an error
    too. ValueError where dimensions do not fit the arguments or results.

    >>> import tracejit
    >>> rows = tracejit.arange(6.0).reshape(3, 2)
    >>> tracejit.vmap(tracejit.dot, in_dims=(0, None))(rows, tracejit.tensor([1.0, 10.0]))
    tensor([10., 32., 54.])
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or "
                           f"'same'. Got {randomness}")
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, in_dims, out_dims, randomness)
        return call.run(args, kwargs, chunk_size)

    return mapped


class _Call:
    def __init__(self, func: Callable[..., Any], in_dims: Any, out_dims: Any, randomness: str):
        self.func, self.name, self.randomness = func, _name(func), randomness
        self.in_dims, self.out_dims = in_dims, out_dims
        _check_out_dims(self.name, out_dims)

    def run(self, args: tuple, kwargs: dict, chunk_size: int | None) -> Any:
        tracer: Any = active.tracer
        if tracer is not None and tracer.root.speculation_depth:
            tracer.break_graph(None, "a branch or a loop calls vmap")
        leaves, spec = tree_flatten(args)
        dims = self._dims_of(leaves, spec, args)
        sizes = [x.shape[d] for x, d in zip(leaves, dims) if d is not None]
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over")
        if any(size != sizes[0] for size in sizes):
            raise ValueError("vmap: Expected all tensors to have the same size in the mapped "
                             f"dimension, got sizes {sizes} for the mapped dimension")
        if chunk_size is None or chunk_size >= sizes[0]:
            found, spec_of_results, out_dims = self._whole(leaves, dims, spec, kwargs, sizes[0])
        else:
            same = get_rng_state() if self.randomness == "same" else None
            chunks = []
            for part, part_size in _parts(leaves, dims, sizes[0], chunk_size):
                if same is not None:
                    set_rng_state(same)
                chunks.append(self._whole(part, dims, spec, kwargs, part_size))
            spec_of_results, out_dims = chunks[0][1], chunks[0][2]
            found = [parts[0] if d is None else cat(parts, dim=d)
                     for d, *parts in zip(out_dims, *(chunk[0] for chunk in chunks))]
        return tree_unflatten(found, spec_of_results)

    def _dims_of(self, leaves: list[Any], spec: TreeSpec, args: tuple) -> list[int | None]:
        """Return the dimension that each leaf of the arguments is mapped over. ValueError where
        `in_dims` does not fit."""
        where = f"vmap({self.name}, in_dims={self.in_dims}, ...)(<inputs>)"
        if not isinstance(self.in_dims, (int, tuple)):
            raise ValueError(f"{where}: expected `in_dims` to be int or a (potentially nested) "
                             f"tuple matching the structure of inputs, got: {type(self.in_dims)}.")
        if not args:
            raise ValueError(
                f"vmap({self.name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or "
                "you are trying to vmap over a function with no inputs. The latter is unsupported.")
        dims = spread(self.in_dims, spec)
        if dims is None:
            raise ValueError(f"{where}: in_dims is not compatible with the structure of `inputs`. "
                             f"in_dims has structure {tree_flatten(self.in_dims)[1]} but inputs "
                             f"has structure {spec}.")
        return [_checked(where, x, d) for x, d in zip(leaves, dims)]

    def _whole(self, leaves: Sequence[Any], dims: Sequence[int | None], spec: TreeSpec,
               kwargs: dict, count: Any) -> tuple[list[Any], TreeSpec, list[int | None]]:
        """Return the results for all samples, their structure, and their mapped dimensions."""
        below: Any = active.tracer
        func = self.func if below is None else below.convert_call(self.func)
        mapping = Mapping(f"vmap({self.name})", below, count, self.randomness)
        samples = [x if d is None else mapping.sample(movedim(x, d, 0))
                   for x, d in zip(leaves, dims)]
        with mapping.running():
            results = func(*tree_unflatten(samples, spec), **kwargs)
        found, spec_of_results = tree_flatten(results)
        out_dims = self._out_dims_of(results, spec_of_results)
        return ([self._result(mapping, x, d) for x, d in zip(found, out_dims)], spec_of_results,
                out_dims)

    def _out_dims_of(self, results: Any, spec: TreeSpec) -> list[int | None]:
        if isinstance(results, Tensor):
            if isinstance(self.out_dims, tuple) and len(self.out_dims) == 1:
                return list(self.out_dims)
            dims = [self.out_dims] if isinstance(self.out_dims, int | None) else None
        else:
            dims = spread(self.out_dims, spec)
        if dims is None:
            self._refuse_out_dims(spec)
        return dims

    def _refuse_out_dims(self, spec: TreeSpec) -> NoReturn:
        raise ValueError(f"vmap({self.name}, ..., out_dims={self.out_dims})(<inputs>): out_dims is "
                         "not compatible with the structure of `outputs`. out_dims has structure "
                         f"{tree_flatten(self.out_dims)[1]} but outputs has structure {spec}.")

    def _result(self, mapping: Mapping, x: Any, dim: int | None) -> Any:
        if dim is None:
            if mapping.has(x):
                raise ValueError(f"vmap({self.name}, ...): `{self.name}` can not return a "
                                 "BatchedTensor when out_dim is None")
            return x
        if not isinstance(x, Tensor):
            raise ValueError(f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got "
                             f"type {type(x)}. Did you mean to set out_dims= to None for output?")
        return movedim(mapping.whole(x), 0, dim)


def _checked(where: str, x: Any, dim: Any) -> int | None:
    """Return the mapped dimension of an argument, counted from the front."""
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(f"{where}: Got in_dim={dim} for an input but in_dim must be either an "
                         "integer dimension or None.")
    if not isinstance(x, Tensor):
        raise ValueError(f"{where}: Got in_dim={dim} for an input but the input is of type "
                         f"{type(x)}. We cannot vmap over non-Tensor arguments, please use None as "
                         "the respective in_dim")
    if not -x.dim() <= dim < x.dim():
        raise ValueError(f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of "
                         f"dimensionality {x.dim()} so expected in_dim to satisfy -{x.dim()} <= "
                         f"in_dim < {x.dim()}.")
    return dim % x.dim()


def _check_out_dims(name: str, out_dims: Any) -> None:
    if any(x is not None and not isinstance(x, int) for x in tree_flatten(out_dims)[0]):
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None "
                         "or a python collection of ints representing where in the outputs the "
                         "vmapped dimension should appear.")


def spread(dims: Any, spec: TreeSpec) -> list[Any] | None:
    """Return what a prefix of a tree says of each leaf of the tree; None where it is no prefix.

    >>> from tracejit.utils._pytree import tree_flatten
    >>> spread((0, None), tree_flatten((1, [2, 3]))[1])
    [0, None, None]
    """
    own, own_spec = tree_flatten(dims)
    if own_spec.is_leaf():
        return own * spec.num_leaves
    if spec.is_leaf() or own_spec.type is not spec.type or own_spec.context != spec.context:
        return None
    parts = [tree_unflatten(own[start:stop], child) for start, stop, child in _children(own_spec)]
    if len(parts) != spec.num_children:
        return None
    found: list[Any] = []
    for part, child in zip(parts, spec.children()):
        leaves = spread(part, child)
        if leaves is None:
            return None
        found += leaves
    return found


def _children(spec: TreeSpec) -> Iterator[tuple[int, int, TreeSpec]]:
    """Yield (first, one past the last, spec) of each child: its places among the leaves."""
    start = 0
    for child in spec.children():
        yield start, start + child.num_leaves, child
        start += child.num_leaves


def _parts(leaves: Sequence[Any], dims: Sequence[int | None], count: Any,
           size: int) -> Iterator[tuple[list[Any], Any]]:
    """Yield (arguments, number of samples) for `size` samples at a time."""
    for start in range(0, count, size):
        length = min(size, count - start)
        yield [x if d is None else x.narrow(d, start, length)
               for x, d in zip(leaves, dims)], length


def _name(func: Any) -> str:
    if isinstance(func, functools.partial):
        return f"functools.partial({_name(func.func)}, ...)"
    return getattr(func, "__name__", None) or repr(func)
