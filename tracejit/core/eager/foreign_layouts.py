"""Answers of a tensor about layouts and devices that are not here, and deprecated names.

In: a tensor. Out: the constants that PyTorch's tensors on the CPU show, and its refusals. Called by
programs and packages that ask before they choose a path.
"""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

from tracejit.core.ops.types import BOOL, FLOATING


class ForeignLayouts:
    """Constants and refusals of a dense tensor."""

    __slots__ = ()
    is_sparse_csr = is_vulkan = is_ipu = is_maia = is_mtia = property(
        lambda self: False, doc="""False for every shape: no dense tensor of CPU or CUDA is one.

        >>> import tracejit
        >>> tracejit.ones(2).is_sparse_csr
        False
        """)
    _has_symbolic_sizes_strides = _python_dispatch = property(lambda self: False)
    name = property(lambda self: None, doc="""None for every shape: tensors have no names.

        >>> import tracejit
        >>> tracejit.ones(2).name is None
        True
        """)

    @property
    def grad_dtype(self: Any) -> Any:
        """Dtype of a gradient: the tensor's own, in any shape; None if the tensor can have no
        gradient.

        >>> import tracejit
        >>> tracejit.ones(2).grad_dtype
        tracejit.float32
        """
        return self.dtype if self.dtype.category >= FLOATING else None

    @property
    def volatile(self) -> bool:
        """False for every shape: a flag from before `no_grad`. Reading it warns."""
        warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning,
                      stacklevel=2)
        return False

    @property
    def _cdata(self) -> int:
        """Number that is the tensor's own while it lives."""
        return id(self)

    def is_distributed(self) -> bool:
        """False for every shape: no tensor is spread over processes.

        >>> import tracejit
        >>> tracejit.ones(2).is_distributed()
        False
        """
        return False

    def _is_zerotensor(self) -> bool:
        return False

    def const_data_ptr(self: Any) -> int:
        """Return `data_ptr` of a tensor of any shape, for code that only reads.

        >>> import tracejit
        >>> x = tracejit.ones(2)
        >>> x.const_data_ptr() == x.data_ptr()
        True
        """
        return self.data_ptr()

    def dequantize(self: Any) -> Any:
        """Return the values as float32, in the same shape. No tensor is quantized here, so this
        converts.

        >>> import tracejit
        >>> tracejit.tensor([1, 2]).dequantize()
        tensor([1., 2.])
        """
        return self.float()

    def _is_all_true(self: Any) -> Any:
        return _of_bools(self).all()

    def _is_any_true(self: Any) -> Any:
        return _of_bools(self).any()

    def _neg_view(self: Any) -> Any:
        return -self

    def _conj_physical(self: Any) -> Any:
        return self.conj_physical()

    def _conj(self: Any) -> Any:
        return self.conj()

    def __long__(self: Any) -> int:
        return int(self)

    def __nonzero__(self: Any) -> bool:
        return bool(self)

    def __div__(self: Any, other: Any) -> Any:
        return self / other

    def __idiv__(self: Any, other: Any) -> Any:
        self /= other
        return self

    def xpu(self, *arguments: Any, **named: Any) -> NoReturn:
        """Raise AssertionError: there is no such device."""
        raise AssertionError("Torch not compiled with XPU enabled")

    def mtia(self, *arguments: Any, **named: Any) -> NoReturn:
        """Raise AssertionError: there is no such device."""
        raise AssertionError("Torch not compiled with MTIA enabled")

    def ipu(self, *arguments: Any, **named: Any) -> NoReturn:
        """Raise RuntimeError: there is no such device."""
        raise RuntimeError("PyTorch is not linked with support for ipu devices")

    def record_stream(self, s: Any) -> None:
        """Do nothing, for any shape: memory is reused only after all work on it.

        >>> import tracejit
        >>> tracejit.ones(2).record_stream(None)
        """

    def index(self, positions: Any, dims: Any) -> NoReturn:
        """Raise NotImplementedError: in PyTorch it indexes named dimensions."""
        raise NotImplementedError("index(): dimensions have no names here; write x[positions]")

    def reinforce(self, reward: Any) -> NoReturn:
        """Raise RuntimeError, as PyTorch does: distributions replaced it."""
        raise RuntimeError("reinforce() was removed. Use torch.distributions instead.")


def _of_bools(x: Any) -> Any:
    if x.dtype.category != BOOL:
        raise RuntimeError("expected a tensor of bools")
    return x


def _refusing(name: str, error: type[Exception], text: str) -> Any:
    def call(self: Any, *arguments: Any, **named: Any) -> NoReturn:
        raise error(text)

    call.__name__, call.__qualname__ = name, f"ForeignLayouts.{name}"
    call.__doc__ = f"{error.__name__}: {text}"
    return call


for _name, _kind in {"crow_indices": "row", "col_indices": "row", "ccol_indices": "column",
                     "row_indices": "column"}.items():
    setattr(ForeignLayouts, _name, _refusing(
        _name, RuntimeError,
        f"{_name} expected sparse {_kind} compressed tensor layout but got Strided"))
for _name in ("_nnz _indices _values _dimI _dimV int_repr q_scale q_zero_point qscheme "
              "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points").split():
    setattr(ForeignLayouts, _name, _refusing(
        _name, NotImplementedError,
        f"Could not run 'aten::{_name}' with arguments from the 'CPU' backend."))
ForeignLayouts._to_dense = _refusing(  # type: ignore[attr-defined]
    "_to_dense", NotImplementedError,
    "Could not run 'aten::_to_dense' with arguments from the 'CPU' backend.")
