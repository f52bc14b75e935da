"""Types that the stubs give to parameters and results whose source says `Any`.

In: names of functions and of their parameters. Out: texts of annotations, in the aliases of
`HEADER`. The sources say `Any` because ops also take graph values and symbolic sizes; users pass
tensors and numbers.
"""

from __future__ import annotations

import re

_FROM = {
    "contextlib": "AbstractContextManager",
    "builtins": "bool bytes complex dict float int list object range str tuple type",
    "collections.abc": "Callable ItemsView Iterator KeysView Sequence ValuesView",
    "typing": "Any Generic Literal NamedTuple NoReturn ParamSpec Protocol Self SupportsIndex "
              "TypeAlias TypeVar",
    "tracejit.core.eager.metadata": "layout memory_format",
    "tracejit.core.eager.size": "Size", "tracejit.core.memory": "device",
    "tracejit.core.ops.generators": "Generator", "tracejit.core.ops.types": "dtype",
    "tracejit": "return_types", "tracejit.nn.utils.rnn": "PackedSequence",
}
IMPORTS = {f"_{name}": f"from {module} import {name} as _{name}"
           for module, names in _FROM.items() for name in names.split()}
IMPORTS |= {"_np": "import numpy as _np",
            "_Ellipsis": "from types import EllipsisType as _Ellipsis",
            "overload": "from typing import overload"}  # jedi knows it by this name only
# Defined in the stub of `Tensor`, for all.
ALIASES = {
    "_Array": "_np.ndarray[_Any, _Any]",
    "_Number": "_int | _float | _complex",
    "_Operand": '"Tensor | _Number | _Array | _np.generic"',
    "_Ints": '"_Sequence[_int] | Tensor"',
    "_IntOrInts": "_int | _Sequence[_int]",
    "_DType": "_dtype | _type[_float] | _type[_int] | _type[_complex] | None",
    "_Device": "_device | _str | _int | None",
    "_Tensors": '"_Sequence[Tensor] | Tensor"',
    "_Key": '"_SupportsIndex | slice | _Ellipsis | Tensor | _Array | _list[_Any]'
            ' | _tuple[_Any, ...] | _range | None"',
}
VARIABLES = {"_P": '_ParamSpec("_P")', "_R": '_TypeVar("_R")',
             "_F": '_TypeVar("_F", bound=_Callable[..., _Any])',
             "_R_co": '_TypeVar("_R_co", covariant=True)'}
_NAME = re.compile(r"(?<![\w.])(?:_[A-Za-z]\w*|overload\b)")


def with_imports(body: str, imports: list[str], home: bool = False) -> str:
    """Put what a stub's body uses in front of it; `home` is the stub with the aliases."""
    used = set(_NAME.findall(body))
    front = [f"{name} = {text}" for name, text in VARIABLES.items() if name in used]
    aliases = ALIASES if home else {name: ALIASES[name] for name in ALIASES if name in used}
    if home:
        front += [f"{name}: _TypeAlias = {text}" for name, text in aliases.items()]
    elif aliases:
        imports = [*imports, "from tracejit.core.eager.tensor import " + ", ".join(aliases)]
    used |= set(_NAME.findall("\n".join(front)))
    lines = [IMPORTS[name] for name in sorted(used & set(IMPORTS))]
    return "\n".join([*lines, *dict.fromkeys(imports), "", *front, "", body, ""])


_TENSOR = """\
input tensor tensor1 tensor2 mat mat1 mat2 vec vec1 vec2 batch1 batch2 A B L LU pivots M x y x1 x2
a b weight target targets index indices mask condition src source input1 input2 tau theta grid
query key value_states v real imag abs angle boundaries sorted_sequence elements test_elements hx
w_ih w_hh b_ih b_hh window log_probs input_lengths target_lengths anchor positive negative
running_mean running_var pos_weight weights fweights aweights sorter prepend append LU_data
LU_pivots attn_mask in_proj_weight in_proj_bias bias_k bias_v out_proj_weight out_proj_bias
key_padding_mask q_proj_weight k_proj_weight v_proj_weight static_k static_v bias linear_weight
linear_bias logits the_template new_state lengths offsets per_sample_weights data gradient prob
count compressed_indices plain_indices ccol_indices row_indices crow_indices col_indices values
_random_samples self out other_tensor h_0 c_0 src_mask tgt tgt_mask memory memory_mask
src_key_padding_mask tgt_key_padding_mask memory_key_padding_mask""".split()
_OPERAND = "other exponent min max value fill_value".split()
_INTS = """kernel_size stride padding dilation output_size output_padding dims order
normalized_shape padding_size""".split()

PARAMETERS: dict[str, str] = {
    **dict.fromkeys(_TENSOR, "Tensor"),
    **dict.fromkeys(_OPERAND, "_Operand"),
    **dict.fromkeys(_INTS, "_IntOrInts"),
    "dim": "_IntOrInts", "alpha": "_Number", "beta": "_Number",
    "dim0": "_int", "dim1": "_int", "device": "_Device", "dtype": "_DType",
    "layout": "_layout", "memory_format": "_memory_format", "size": "_Ints", "shape": "_Ints",
    "sizes": "_Ints", "pad": "_Sequence[_int]", "split_sizes": "_Sequence[_int]", "s": "_Ints",
    "tensors": "_Tensors", "matrices": "_Tensors", "shifts": "_IntOrInts",
    "split_size": "_IntOrInts", "split_size_or_sections": "_IntOrInts",
    "indices_or_sections": "_IntOrInts | Tensor", "correction": "_Number", "q": "Tensor | _float",
    "start": "_Number | Tensor", "end": "_Number | Tensor", "step": "_Number | Tensor",
    "length": "_int", "storage_offset": "_int", "num_samples": "_int", "k": "_int", "n": "_int",
    "low": "_int", "high": "_int", "repeats": "Tensor | _IntOrInts", "p": "_float | _str",
    "ord": "_float | _str", "scale_factor": "_float | _Sequence[_float]",
    "output_ratio": "_float | _Sequence[_float]", "atol": "_float | Tensor",
    "rtol": "_float | Tensor", "tol": "_float | Tensor", "rcond": "_float | Tensor",
    "dx": "_float | Tensor", "spacing": "_Any", "range": "_Sequence[_float]", "order": "_IntOrInts",
    "axes": "_Any", "mean": "Tensor | _float", "std": "Tensor | _float",
    "var": "Tensor | _float", "momentum": "_float", "destination": "_IntOrInts",
    "bins": "_Any", "N": "_int", "C": "_int", "HxW": "_int", "split": "_IntOrInts",
    "inputs": "_Tensors",
}  # fmt: skip

# What a name means in one function only: "function.parameter".
PLACES: dict[str, str] = {
    "select.index": "_int | Tensor", "select_scatter.index": "_int | Tensor",
    "select_copy.index": "_int | Tensor",
    "moveaxis.source": "_IntOrInts", "movedim.source": "_IntOrInts", "from_dlpack.source": "_Any",
    "tensor.data": "_Any", "as_tensor.data": "_Any", "new_tensor.data": "_Any",
    "index_put.indices": "_Sequence[Tensor]", "index_put_.indices": "_Sequence[Tensor]",
    "_index_put_impl_.indices": "_Sequence[Tensor]",
    "conv1d.padding": "_IntOrInts | _str", "conv2d.padding": "_IntOrInts | _str",
    "conv3d.padding": "_IntOrInts | _str", "tensordot.dims": "_Any",
    "tensor_split.indices_or_sections": "_IntOrInts | Tensor",
    "full.fill_value": "_Number | Tensor", "arange.step": "_Number",
    "scatter.src": "Tensor | _Number", "scatter_.src": "Tensor | _Number",
    "__getitem__.key": "_Key", "__setitem__.key": "_Key", "__delitem__.key": "_Key",
    "addcmul.value": "_Number", "addcdiv.value": "_Number", "__contains__.element": "_Any",
    "dist.p": "_float", "cdist.p": "_float", "pdist.p": "_float", "bernoulli_.p": "Tensor | _float",
    "searchsorted.input": "Tensor | _Number", "bucketize.input": "Tensor | _Number",
    "isin.elements": "Tensor | _Number", "isin.test_elements": "Tensor | _Number",
    "narrow.start": "_int | Tensor", "narrow_copy.start": "_int | Tensor",
    "slice_scatter.start": "_int", "slice_scatter.end": "_int", "slice_scatter.step": "_int",
    "slice_copy.start": "_int", "slice_copy.end": "_int", "slice_copy.step": "_int",
    "copy_.source": "Tensor | _Array | _Number", "map_.callable": "_Callable[[_Any, _Any], _Any]",
    "linspace.start": "_Number | Tensor", "set_.source": "_Any", "clamp.min": "Tensor | _Number",
    "fft.n": "_int", "ctc_loss.input_lengths": "Tensor | _Sequence[_int]",
    "ctc_loss.target_lengths": "Tensor | _Sequence[_int]", "gradient.dim": "_IntOrInts",
    "multi_head_attention_forward.need_weights": "_bool", "unfold.step": "_int",
    "binomial.count": "Tensor", "meshgrid.indexing": "_str", "set_rng_state.new_state": "Tensor",
    "compile.model": "_Any", "tril_indices.layout": "_layout", "triu_indices.layout": "_layout",
    "unravel_index.shape": "_int | _Ints", "is_set_to.tensor": "Tensor",
    "segment_reduce.axis": "_int", "index.positions": "_Any", "new_full.fill_value": "_Number",
    "fill_diagonal_.fill_value": "_Number", "full_like.fill_value": "_Number | Tensor",
    "norm.p": "_float | _str", "renorm.p": "_float", "renorm_.p": "_float",
    "cond.p": "_float | _str",
    "is_tensor.obj": "_object", "is_storage.obj": "_object", "normalize.dim": "_IntOrInts",
    "pad.value": "_float", "threshold.value": "_float", "gaussian_nll_loss.var": "Tensor | _float",
    "frobenius_norm.dim": "_IntOrInts", "random_.from": "_int", "type.dtype": "_DType | _str",
    "tensor_split.dim": "_int", "matrix_power.n": "_int", "type_as.other": "Tensor",
    "expand_as.other": "Tensor", "view_as.other": "Tensor", "reshape_as.other": "Tensor",
    "equal.other": "Tensor", "matmul.other": "Tensor", "inner.other": "Tensor",
    "kron.other": "Tensor", "cross.other": "Tensor", "dist.other": "Tensor",
    "vdot.other": "Tensor", "allclose.other": "Tensor", "isclose.other": "Tensor",
    "is_same_size.other": "Tensor", "sum_to_size.size": "_int", "__matmul__.other": "Tensor",
    "__rmatmul__.other": "Tensor | _Array", "to_dense.dtype": "_DType",
    "cumulative_trapezoid.x": "Tensor", "polygamma.n": "_int", "randperm.n": "_int",
    "topk.k": "_int | Tensor",
}  # fmt: skip

_PAIRS = """adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d std_mean var_mean
native_dropout lstm_cell max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices
adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices
fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices""".split()
_TRIPLES = "native_batch_norm native_group_norm native_layer_norm pca_lowrank svd_lowrank".split()
_MANY = """chunk split split_with_sizes unsafe_chunk unsafe_split unsafe_split_with_sizes
tensor_split hsplit vsplit dsplit unbind gradient broadcast_tensors meshgrid split_copy
split_with_sizes_copy unbind_copy unravel_index""".split()
_TRUTHS = """allclose equal is_tensor is_storage is_complex is_floating_point is_conj is_neg
is_inference is_nonzero is_same_size is_signed is_set_to is_contiguous is_pinned is_coalesced
is_shared can_cast has_names
are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled
is_warn_always_enabled is_grad_enabled is_inference_mode_enabled is_anomaly_enabled
is_anomaly_check_nan_enabled is_autocast_enabled is_autocast_cpu_enabled
is_autocast_cache_enabled""".split()
_COUNTS = """numel nelement dim ndimension element_size data_ptr get_device sparse_dim dense_dim
get_num_threads get_num_interop_threads get_deterministic_debug_mode const_data_ptr
initial_seed seed storage_offset __len__ __hash__""".split()

RESULTS: dict[str, str] = {
    **dict.fromkeys(_PAIRS, "_tuple[Tensor, Tensor]"),
    **dict.fromkeys(_TRIPLES, "_tuple[Tensor, Tensor, Tensor]"),
    **dict.fromkeys(_MANY, "_tuple[Tensor, ...]"),
    **dict.fromkeys(_TRUTHS, "_bool"),
    **dict.fromkeys(_COUNTS, "_int"),
    "embedding_bag": "Tensor", "item": "_int | _float | _bool",
    "get_float32_matmul_precision": "_str", "manual_seed": "_Generator",
    "tolist": "_list[_Any]", "numpy": "_Array", "__array__": "_Array", "__dlpack__": "_Any",
    "storage": "_Any", "untyped_storage": "_Any", "typed_storage": "_Any", "storage_type": "_Any",
    "load": "_Any", "vmap": "_Callable[..., _Any]", "compare": "_Any", "register_hook": "_Any",
    "get_device_module": "_Any", "result_type": "_dtype", "promote_types": "_dtype",
    "get_default_dtype": "_dtype", "get_default_device": "_device", "qscheme": "_Any",
    "get_autocast_cpu_dtype": "_dtype", "get_autocast_dtype": "_dtype",
    "get_autocast_gpu_dtype": "_dtype", "from_file": "Tensor", "__torch_function__": "_Any",
    "__array_function__": "_Any", "__array_ufunc__": "_Any", "dispatch": "_Any",
    "multi_head_attention_forward": "_tuple[Tensor, Tensor | None]", "lu": "_Any",
    "__iter__": "_Iterator[Tensor]", "register_post_accumulate_grad_hook": "_Any",
    "to_padded_tensor": "Tensor", "dim_order": "_tuple[_int, ...]", "__reduce_ex__": "_Any",
    "typename": "_str", "backward": "None", "retain_grad": "None", "array": "_Any",
}  # fmt: skip

# Functions whose result depends on their arguments, as overloads: (parameters, result).
# Methods leave out `input`. {out}, {outs} and {only} stand for the `out` of functions.
OUT = {
    "out": ", out: Tensor | None = ...",
    "only": ", *, out: Tensor | None = ...",
    "outs": ", *, out: _tuple[Tensor, Tensor] | _list[Tensor] | None = ...",
}


def _extreme(name: str) -> list[tuple[str, str]]:
    return [("input: Tensor{only}", "Tensor"),
            ("input: Tensor, dim: _int, keepdim: _bool = False{outs}", f"_return_types.{name}"),
            ("input: Tensor, other: Tensor{only}", "Tensor")]


def _middle(name: str) -> list[tuple[str, str]]:
    return [("input: Tensor", "Tensor"),
            ("input: Tensor, dim: _int, keepdim: _bool = False{outs}", f"_return_types.{name}")]


def _unique(first: str) -> list[tuple[str, str]]:
    return [(f"input: Tensor, {first}return_inverse: _Literal[False] = ..., "
             "return_counts: _Literal[False] = ..., dim: _int | None = None", "Tensor"),
            (f"input: Tensor, {first}return_inverse: _bool = False, "
             "return_counts: _bool = False, dim: _int | None = None", "_tuple[Tensor, ...]")]


def _among(one: str) -> list[tuple[str, str]]:
    return [("tensor: Tensor, /", one), ("*tensors: _Tensors", "_Any")]


_MADE = """*, generator: _Generator | None = None, out: Tensor | None = None, dtype: _DType = None,
layout: _layout | None = None, device: _Device = None, requires_grad: _bool = False,
pin_memory: _bool = False""".replace("\n", " ")
_COPY = "non_blocking: _bool = False, copy: _bool = False, *, " \
        "memory_format: _memory_format | None = None"
OVERLOADS: dict[str, list[tuple[str, str]]] = {
    "max": _extreme("max"), "min": _extreme("min"),
    "median": _middle("median"), "nanmedian": _middle("nanmedian"),
    "where": [("condition: Tensor", "_tuple[Tensor, ...]"),
              ("condition: Tensor, input: _Operand, other: _Operand{only}", "Tensor")],
    "nonzero": [("input: Tensor, *, as_tuple: _Literal[False] = ...{out}", "Tensor"),
                ("input: Tensor, *, as_tuple: _Literal[True]", "_tuple[Tensor, ...]")],
    "unique": _unique("sorted: _bool = True, "), "unique_consecutive": _unique(""),
    "atleast_1d": _among("Tensor"), "atleast_2d": _among("Tensor"), "atleast_3d": _among("Tensor"),
    "randint": [("high: _int, size: _Ints, " + _MADE, "Tensor"),
                ("low: _int, high: _int, size: _Ints, " + _MADE, "Tensor")],
}  # fmt: skip
METHOD_OVERLOADS: dict[str, list[tuple[str, str]]] = {
    "where": [("condition: Tensor, other: _Operand", "Tensor")],
    "size": [("dim: None = None", "_Size"), ("dim: _int", "_int")],
    "stride": [("dim: None = None", "_tuple[_int, ...]"), ("dim: _int", "_int")],
    "type": [("dtype: None = None, non_blocking: _bool = False", "_str"),
             ("dtype: _DType | _str, non_blocking: _bool = False", "Tensor")],
    "to": [("dtype: _DType, " + _COPY, "Tensor"),
           ("device: _Device = None, dtype: _DType = None, " + _COPY, "Tensor"),
           ("other: Tensor, " + _COPY, "Tensor")],
    "view": [("dtype: _DType", "Tensor"), ("*shape: _int", "Tensor"), ("size: _Ints", "Tensor")],
    "new": [("*args: _Any, device: _Device = None", "Tensor"),
            ("*, size: _Ints, device: _Device = None", "Tensor")],
    "random_": [("from_: _int, to: _int | None, /, *, generator: _Generator | None = None",
                 "Tensor"),
                ("to: _int = ..., /, *, generator: _Generator | None = None", "Tensor")],
    "__new__": [("*args: _Any, **kwargs: _Any", "_Any")],
}  # fmt: skip

# Types of properties whose source says `Any`.
_OF_TENSOR = "T H mT mH real imag data".split()
_OF_NUMBER = "ndim itemsize nbytes output_nr _version _output_nr _offset".split()
_OF_TRUTH = """is_leaf is_cuda is_cpu is_meta is_sparse is_sparse_csr is_mkldnn is_mps is_xpu is_xla
is_quantized is_nested is_complex requires_grad retains_grad is_ipu is_maia is_mtia is_vulkan
is_hpu is_vulkan""".split()
PROPERTIES: dict[str, str] = {
    **dict.fromkeys(_OF_TENSOR, "Tensor"), **dict.fromkeys(_OF_NUMBER, "_int"),
    **dict.fromkeys(_OF_TRUTH, "_bool"),
    # None before a backward; a program knows better than a checker when that is over.
    "grad": "Tensor | _Any",
    "shape": "_Size", "device": "_device", "dtype": "_dtype", "layout": "_layout",
}  # fmt: skip
