"""Functions, methods and properties that ask classes and modes to override them, and their gates.

In: the public modules. Out: gates (`core/ops/gates.py`) before everything in which PyTorch asks
classes. Called when the first class or mode that overrides exists, and by `tracejit.overrides`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import overriding, sealing
from tracejit.core.ops.gates import Gate, stand
from tracejit.core.ops.record import Op

# Functions that PyTorch writes in Python: it passes classes all arguments, defaults by name.
_IN_PYTHON = {
    "tracejit": """atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod
    cdist chain_matmul einsum lobpcg lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot
    unique unique_consecutive unravel_index""",
    "tracejit.nn.functional": """adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d affine_grid alpha_dropout batch_norm
    binary_cross_entropy binary_cross_entropy_with_logits celu cosine_embedding_loss cross_entropy
    ctc_loss dropout dropout1d dropout2d dropout3d elu embedding embedding_bag
    feature_alpha_dropout fold fractional_max_pool2d fractional_max_pool3d gaussian_nll_loss glu
    grid_sample group_norm gumbel_softmax hardtanh hinge_embedding_loss huber_loss instance_norm
    interpolate kl_div l1_loss layer_norm leaky_relu linear_cross_entropy local_response_norm
    log_softmax lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss max_pool1d max_pool2d max_pool3d
    max_unpool1d max_unpool2d max_unpool3d mish mse_loss multi_head_attention_forward
    multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nll_loss normalize pad
    poisson_nll_loss relu relu6 rms_norm rrelu selu silu smooth_l1_loss soft_margin_loss softmax
    softmin softsign tanhshrink threshold triplet_margin_loss triplet_margin_with_distance_loss
    unfold""",
    "tracejit.nn.init": "constant_ kaiming_uniform_ normal_ uniform_",
    "tracejit.autograd": "backward grad",
    "Tensor": """__array__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __floordiv__
    __format__ __ipow__ __len__ __pow__ __rdiv__ __reduce_ex__ __repr__ __reversed__ __rfloordiv__
    __rlshift__ __rmatmul__ __rmod__ __rpow__ __rrshift__ __rsub__ __rtruediv__ backward dim_order
    is_shared istft lu module_load norm register_hook register_post_accumulate_grad_hook
    share_memory_ split stft storage storage_type to_sparse_coo unflatten unique
    unique_consecutive""",
}
# Functions in which no class is asked.
_UNASKED = frozenset("""_assert _check _check_index _check_is_size _check_not_implemented
_check_tensor_all _check_type _check_value _check_with _library _watch_for_einops broadcast_shapes
are_deterministic_algorithms_enabled can_cast clear_autocast_cache compare compile from_dlpack
get_device_module initial_seed is_storage is_tensor load manual_seed no_recompile promote_types
result_type save script seed typename use_deterministic_algorithms vander vmap trace_function
sparse_coo_tensor as_tensor asarray tensor from_numpy from_file frombuffer upsample
upsample_bilinear upsample_nearest normalize_dim multi_head_attention_forward_""".split())
_QUESTIONS = ("get_", "set_", "is_anomaly", "is_autocast", "is_deterministic", "is_grad",
              "is_inference_mode", "is_warn")
_OF_MODULES = ("tracejit", "tracejit.nn.functional", "tracejit.linalg", "tracejit.special",
               "tracejit.fft", "tracejit.nn.init", "tracejit.autograd")
_INITIALISERS = frozenset("constant_ kaiming_uniform_ normal_ uniform_".split())
_DERIVING = frozenset(("backward", "grad"))
# Methods of tensors in which no class is asked.
_OWN_METHODS = frozenset("""__array_function__ __array_ufunc__ __copy__ __delitem__ __dir__
__getattr__ __getstate__ __hash__ __init__ __init_subclass__ __setattr__ __setstate__
__str__ as_subclass become new new_tensor""".split())
_OWN_PROPERTIES = frozenset(["array"])
# Operator -> the method by which PyTorch presents it to classes.
_OPERATORS = {
    "__add__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul",
    "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_", "__mod__": "remainder",
    "__imod__": "remainder_", "__pow__": "pow", "__matmul__": "matmul", "__eq__": "eq",
    "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
    "__neg__": "neg", "__pos__": "positive", "__abs__": "abs", "__ifloordiv__": "floor_divide_",
    "__radd__": "add", "__rmul__": "mul", "nelement": "numel",
}  # fmt: skip
_BINARY = frozenset(_OPERATORS) - {"__neg__", "__pos__", "__abs__", "nelement"} | frozenset(
    f"__{side}{name}__" for side in ("", "r", "i")
    for name in "and or xor lshift rshift floordiv pow sub truediv mod matmul".split())


class Overridable(NamedTuple):
    """Public function, method or property that can be overridden.

    place   module or class that holds it
    module  name of the module, or "Tensor"
    name    in `place`
    found   the function, record or property
    """

    place: Any
    module: str
    name: str
    found: Any


def functions() -> Iterator[Overridable]:
    """Yield the functions of public modules that classes can override."""
    for module in _OF_MODULES:
        place = importlib.import_module(module)
        for name, found in list(vars(place).items()):
            if isinstance(found, (FunctionType, Op)) and _asks(module, name, found):
                yield Overridable(place, module, name, found)


def _asks(module: str, name: str, found: Any) -> bool:
    if name in _UNASKED or name.startswith(_QUESTIONS) or name.startswith("__"):
        return False
    if module == "tracejit.nn.init":
        return name in _INITIALISERS
    if module == "tracejit.autograd":
        return name in _DERIVING
    return not name.startswith("_") or name.startswith("_foreach") or name in (
        "_softmax", "_log_softmax", "_weight_norm")


def methods() -> Iterator[Overridable]:
    """Yield the methods of tensors that classes can override."""
    for base in Tensor.__mro__[:-1]:
        for name, found in list(vars(base).items()):
            private = name.startswith("_") and not name.startswith("__")
            if isinstance(found, FunctionType) and not private and name not in _OWN_METHODS:
                yield Overridable(Tensor, "Tensor", name, found)


def properties() -> Iterator[Overridable]:
    """Yield the properties of tensors that classes can override."""
    for base in Tensor.__mro__[:-1]:
        for name, found in list(vars(base).items()):
            if isinstance(found, property) and name not in _OWN_PROPERTIES:
                yield Overridable(Tensor, "Tensor", name, found)


def title(entry: Overridable) -> str:
    """Return the name that messages give, which is PyTorch's."""
    module = {"tracejit": "torch", "Tensor": "torch.Tensor"}.get(
        entry.module, entry.module.replace("tracejit", "torch"))
    if entry.module == "tracejit" and entry.name in _IN_PYTHON["tracejit"].split():
        module = "torch.functional"
    return f"{module}.{entry.name}"


def raise_gates() -> None:
    """Put a gate before everything that classes can override."""
    for entry in functions():
        if entry.found not in overriding.gates:
            _stand_function(entry)
    for entry in methods():
        if entry.found not in overriding.gates:
            _stand_method(entry)
    for entry in properties():
        _stand_property(entry)
    _stand_records()


def _in_python(entry: Overridable) -> bool:
    return entry.name in _IN_PYTHON.get(entry.module, "").split()


def _stand_function(entry: Overridable) -> None:
    kind = _OperandsGate if entry.name == "einsum" else Gate
    gate = kind(entry.found, entry.found, title(entry), _in_python(entry))
    if isinstance(entry.found, Op):
        overriding.gates[entry.found] = gate
        gate.original = _Plainly(entry.found)
    else:
        _name(entry.found, entry.name)
        stand(entry.found, gate)


def _stand_method(entry: Overridable) -> None:
    told = getattr(Tensor, _OPERATORS.get(entry.name, entry.name), entry.found)
    if getattr(Tensor, entry.found.__name__, None) is not entry.found:
        entry.found.__name__ = entry.name
        entry.found.__qualname__ = f"Tensor.{entry.name}"
    if entry.name == "__iter__":
        tensors: Any = Tensor
        stand(entry.found, _IterationGate(entry.found, tensors.unbind, "torch.Tensor.unbind"))
        return
    stand(entry.found, Gate(entry.found, told, title(entry), _in_python(entry),
                            operator=entry.name in _BINARY))


class _OperandsGate(Gate):
    """Before `einsum`, whose classes are told of each operand where it is given a list of them."""

    __slots__ = ()

    def bound(self, arguments: tuple, named: dict) -> tuple[tuple, dict]:
        found, keywords = super().bound(arguments, named)
        if len(found) == 2 and isinstance(found[1], (list, tuple)):
            found = (found[0], *found[1])
        return found, keywords


class _IterationGate(Gate):
    """Gate before `__iter__`, which PyTorch presents to classes as `unbind`."""

    __slots__ = ()

    def answer(self, arguments: tuple, named: dict) -> Any:
        return iter(super().answer((*arguments, 0), named))


def _stand_property(entry: Overridable) -> None:
    """Put gates before the accessors that read, write and delete a property."""
    found = entry.found
    for accessor, told, kind in ((found.fget, found.__get__, "__get__"),
                                 (found.fset, found.__set__, "__set__"),
                                 (found.fdel, found.__delete__, "__delete__")):
        if isinstance(accessor, FunctionType) and accessor not in overriding.gates:
            stand(accessor, Gate(accessor, told, f"{title(entry)}.{kind}"))


def _name(function: Any, name: str) -> None:
    """Name a function that a decorator made after its public name."""
    if function.__name__ in ("call", "function", "<lambda>", "new", "in_place"):
        function.__name__ = function.__qualname__ = name


class _Plainly:
    """Call of a record past its gate."""

    __slots__ = ("op",)

    def __init__(self, op: Op) -> None:
        self.op = op

    def __call__(self, *operands: Any, **attributes: Any) -> Any:
        return _run_record(self.op, *operands, **attributes)


_run_record = Op.__call__


def _through_gate(self: Op, *operands: Any, **attributes: Any) -> Any:
    """Call a record, through its gate if it has one."""
    gate = overriding.gates.get(self)
    if gate is None:
        return _run_record(self, *operands, **attributes)
    return gate.through(operands, attributes)


def _stand_records() -> None:
    sealing.seal(_through_gate)  # type: ignore[arg-type]
    Op.__call__ = _through_gate  # type: ignore[method-assign]
