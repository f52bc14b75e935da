"""Properties of a tensor that do not depend on its elements.

In: the tensor's fields, or the tracer's answers while a function is recorded. Out: PyTorch's
properties and methods. Mixed into Tensor.
"""

from __future__ import annotations

from itertools import pairwise
from operator import attrgetter
from typing import Any

from tracejit.core.eager.identity import resolve_identity
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import version_of
from tracejit.core.eager.size import Size
from tracejit.core.eager.state import (
    TensorState,
    is_contiguous,
    public_shape,
    shape_of,
    strides_of,
)
from tracejit.core.eager.views import View, chain_of, family_of
from tracejit.core.ops.shapes import normalize_dim, numel


class layout:
    """Layout of elements: strided or sparse_coo. Other layouts exist by name only.

    >>> import tracejit
    >>> tracejit.tensor([1]).layout
    tracejit.strided
    """

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"tracejit.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided, sparse_coo, jagged = layout("strided"), layout("sparse_coo"), layout("jagged")
sparse_csr, sparse_csc = layout("sparse_csr"), layout("sparse_csc")
sparse_bsr, sparse_bsc, _mkldnn = layout("sparse_bsr"), layout("sparse_bsc"), layout("_mkldnn")


class memory_format:
    """Order of elements in memory, as PyTorch names it.

    Here every format means row-major order.

    >>> import tracejit
    >>> tracejit.channels_last
    tracejit.channels_last
    """

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"tracejit.{self.name}"

    def __reduce__(self) -> str:
        return self.name


contiguous_format, preserve_format = map(memory_format, ("contiguous_format", "preserve_format"))
legacy_contiguous_format = contiguous_format
channels_last, channels_last_3d = map(memory_format, ("channels_last", "channels_last_3d"))


class Metadata(TensorState):
    """Shape, dtype, device, strides and the like."""

    __slots__ = ()

    shape = property(public_shape)
    dtype = property(attrgetter("_dtype"), doc="""Dtype of the elements; the shape does not count.

        >>> import tracejit
        >>> tracejit.ones(2).dtype
        tracejit.float32
        """)
    device = property(attrgetter("_device"), doc="""Device that has the elements, of any shape.

        >>> import tracejit
        >>> tracejit.ones(2).device
        device(type='cpu')
        """)

    @property
    def output_nr(self) -> int:
        """Number of this tensor among the results of its `grad_fn`, from 0; the shape does not
        count.
        """
        self._told("output_nr")
        return max(self._output_nr, 0)

    @property
    def ndim(self) -> int:
        """Number of dimensions: the length of `shape`.

        >>> import tracejit
        >>> tracejit.ones(2, 3).ndim
        2
        """
        return len(shape_of(self))

    @property
    def layout(self) -> layout:
        """Layout of elements: `tracejit.strided` for every shape.

        >>> import tracejit
        >>> tracejit.ones(2).layout
        tracejit.strided
        """
        return strided

    @property
    def is_cuda(self) -> bool:
        """True for a tensor, of any shape, on a CUDA device.

        >>> import tracejit
        >>> tracejit.ones(2).is_cuda
        False
        """
        return self._device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        """True for a tensor, of any shape, in main memory.

        >>> import tracejit
        >>> tracejit.ones(2).is_cpu
        True
        """
        return self._device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        """True for a tensor that has a shape and no elements.

        >>> import tracejit
        >>> tracejit.empty(2, device="meta").is_meta
        True
        """
        return self._device.type == "meta"

    is_sparse = is_quantized = is_mkldnn = is_nested = property(
        lambda self: False, doc="""False for every shape: the tensor is dense.

        >>> import tracejit
        >>> tracejit.ones(2).is_sparse
        False
        """)
    is_mps = is_xla = is_xpu = property(
        lambda self: False, doc="""False for every shape: there is no such device.

        >>> import tracejit
        >>> tracejit.ones(2).is_mps
        False
        """)

    @property
    def itemsize(self) -> int:
        """Number of bytes of one element; the shape does not count.

        >>> import tracejit
        >>> tracejit.ones(2).itemsize
        4
        """
        return self._dtype.itemsize

    @property
    def nbytes(self) -> Any:
        """Number of bytes of all elements: the product of `shape` times `itemsize`.

        >>> import tracejit
        >>> tracejit.ones(2, 3).nbytes
        24
        """
        return numel(shape_of(self)) * self._dtype.itemsize

    @property
    def _version(self) -> int:
        self._told("_version")
        return version_of(self)

    @property
    def _base(self) -> Any:
        """Tensor that this one is a differentiable view of, or None."""
        self._told("_base")
        self = resolve_identity(self)
        base, steps = chain_of(self)
        return base if steps else None

    def _forget_view(self) -> Any:
        """Drop the tensor's view record and return the tensor. Nobody else may look at its
        memory."""
        if active.tracer is None and type(self._view) is View:
            self._view = None
        return self

    def _is_view(self) -> bool:
        self._told("_is_view()")
        return bool(chain_of(resolve_identity(self))[1])

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or its size along one dimension.

        >>> import tracejit
        >>> tracejit.zeros(2, 3).size(-1)
        3
        """
        shape = shape_of(self)
        if dim is None:
            return tuple.__new__(Size, shape)
        return shape[normalize_dim(dim, len(shape), False)]

    def dim(self) -> int:
        """Return the number of dimensions: the length of `shape`.

        >>> import tracejit
        >>> tracejit.ones(2, 3).dim()
        2
        """
        return len(shape_of(self))

    ndimension = dim

    def numel(self) -> Any:
        """Return the number of elements: the product of `shape`.

        >>> import tracejit
        >>> tracejit.ones(2, 3).numel()
        6
        """
        return numel(shape_of(self))

    nelement = numel

    def element_size(self) -> int:
        """Return the number of bytes of one element; the shape does not count.

        >>> import tracejit
        >>> tracejit.ones(2).element_size()
        4
        """
        return self._dtype.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Return the steps between neighbours in memory along each dimension, in elements.

        >>> import tracejit
        >>> tracejit.zeros(2, 3).stride()
        (3, 1)
        """
        strides = strides_of(self) if active.tracer is None else active.tracer.strides(self)
        return strides if dim is None else strides[normalize_dim(dim, len(strides), False)]

    def dim_order(self, *, ambiguity_check: Any = False) -> tuple[int, ...]:
        """Return the dimensions from the one with the largest steps in memory to the one with the
        least.

        ambiguity_check: True to raise RuntimeError if several orders fit; or a list of memory
        formats, to raise it unless exactly one of them fits.

        >>> import tracejit
        >>> tracejit.zeros(2, 3).T.dim_order()
        (1, 0)
        """
        formats = ambiguity_check if isinstance(ambiguity_check, list) else None
        known = all(isinstance(x, memory_format) for x in formats or ())
        if not known or formats is None and not isinstance(ambiguity_check, bool):
            raise TypeError("The ambiguity_check argument must be a bool or a list of memory "
                            "formats.")
        sizes, strides = tuple(self.size()), tuple(self.stride())
        several = 1 in sizes or any(a == b for a, b in pairwise(strides))
        fitting = [x for x in formats or () if self.is_contiguous(memory_format=x)]
        if ambiguity_check and several and len(fitting) != 1:
            raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact "
                               "one of the given memory formats.")
        order: list[int] = []
        for k, step in enumerate(strides):
            place = k
            for j in range(k - 1, -1, -1):  # stride 0 (expanded) compares with none
                other, longer = strides[order[j]], sizes[k] > sizes[order[j]]
                if other > step > 0:
                    break
                if 0 < other < step or other == step > 0 and longer:
                    place = j
            order.insert(place, k)
        return tuple(order)

    def _can_view(self, shape: tuple) -> bool:
        """Return True if the tracer lets `view` give this shape. Without a tracer the strides
        decide later."""
        return active.tracer is None or active.tracer.can_view_as(self, shape)

    def _selected(self, dim: int, index: Any) -> Any:
        """Return the view at a position that only the program knows: the tracer makes it. Else
        return None."""
        tracer = active.tracer
        return None if tracer is None else tracer.selected(self, dim, index)

    def storage_offset(self) -> Any:
        """Return where in its storage the first element lies, counted in elements, whatever the
        shape.

        >>> import tracejit
        >>> tracejit.arange(5)[2:].storage_offset()
        2
        """
        return self._offset if active.tracer is None else active.tracer.offset(self)

    def data_ptr(self) -> int:
        """Return the address of the first element, an int, whatever the shape.

        >>> import tracejit
        >>> x = tracejit.ones(2)
        >>> x.data_ptr() == x.view(2, 1).data_ptr()
        True
        """
        self._needed("the function calls data_ptr()")
        storage: Any = self._storage
        if not storage.nbytes or not self.numel() or self._device.type == "meta":
            return 0
        return storage.ptr + self._offset * self._dtype.itemsize

    def is_contiguous(self, *, memory_format: Any = None) -> bool:
        """Return True if elements lie in row-major order without gaps, for this shape.

        >>> import tracejit
        >>> tracejit.ones(2, 3).t().is_contiguous()
        False
        """
        if active.tracer is not None:
            return active.tracer.is_contiguous(self)
        return is_contiguous(self)

    def is_floating_point(self) -> bool:
        """Return True if the dtype, in any shape, is a floating point one.

        >>> import tracejit
        >>> tracejit.ones(2).is_floating_point()
        True
        """
        return self._dtype.is_floating_point

    def is_complex(self) -> bool:
        """Return True if the dtype, in any shape, is complex.

        >>> import tracejit
        >>> tracejit.ones(2).is_complex()
        False
        """
        return self._dtype.is_complex

    def is_signed(self) -> bool:
        """Return True if the dtype, in any shape, has negative numbers.

        >>> import tracejit
        >>> tracejit.ones(2).is_signed()
        True
        """
        return self._dtype.is_signed

    def is_inference(self) -> bool:
        """Return True if the tensor, of any shape, was made in inference mode.

        >>> import tracejit
        >>> tracejit.ones(2).is_inference()
        False
        """
        self._told("is_inference()")
        return self._view is not None and family_of(self).inference

    def is_same_size(self, other: Any) -> bool:
        """Return True if another tensor has the same shape.

        >>> import tracejit
        >>> tracejit.ones(2).is_same_size(tracejit.zeros(2))
        True
        """
        return shape_of(self) == shape_of(other)

    def _needed(self, reason: str) -> None:
        """Break the graph: elements are about to be read."""
        if active.tracer is not None:
            active.tracer.break_graph(self, reason)

    def _told(self, what: str) -> None:
        """Break the graph if code reads a property of a tensor made outside that no guard
        checks."""
        if active.tracer is not None and self._traced is None:
            active.tracer.break_graph(
                self, f"the function reads {what} of a tensor made outside it")

    def __len__(self) -> Any:
        shape = shape_of(self)
        if not shape:
            raise TypeError("len() of a 0-d tensor")
        return shape[0].__index__()
