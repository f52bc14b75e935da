"""What the stubs of layers say where their sources say `Any`, and what no source says."""

from __future__ import annotations

# Results of methods of modules and containers, by name.
METHODS: dict[str, str] = {
    **dict.fromkeys("""_apply to float double half bfloat16 share_memory type cpu cuda xpu ipu
to_empty requires_grad_ train eval apply append extend insert""".split(), "_Self"),
    "parameters": "_Iterator[_Parameter]", "buffers": "_Iterator[Tensor]",
    "named_parameters": "_Iterator[_tuple[_str, _Parameter]]",
    "named_buffers": "_Iterator[_tuple[_str, Tensor]]",
    "named_modules": "_Iterator[_tuple[_str, _Module]]", "modules": "_Iterator[_Module]",
    "children": "_Iterator[_Module]", "named_children": "_Iterator[_tuple[_str, _Module]]",
    "get_parameter": "_Parameter", "get_buffer": "Tensor", "get_submodule": "_Module",
    "clip_grad_norm_": "Tensor", "parameters_to_vector": "Tensor", "__dir__": "_list[_str]",
}  # fmt: skip

_RECURRENT = """\
def __init__(self, input_size: _int, hidden_size: _int, num_layers: _int = 1,
             {more}bias: _bool = True, batch_first: _bool = False, dropout: _float = 0.0,
             bidirectional: _bool = False, {last}device: _Device = None,
             dtype: _DType = None) -> None: ..."""
# A packed sequence gives one, which a checker cannot say without refusing sound programs.
_STATE = ("def forward(self, input: Tensor | _PackedSequence, hx: {state} | None = None"
          ") -> _tuple[Tensor | _Any, {state}]: ...")
_ITEMS = """\
@overload
def __getitem__(self, index: slice) -> _Self: ...
@overload
def __getitem__(self, index: _int) -> _Module: ..."""
_DECODED = "def __getitem__(self, index: _int) -> _Module: ..."

# Statements written by hand: "file:Class.name" -> text; "" leaves a member out.
BY_HAND: dict[str, str] = {
    "module.py:Module.forward": "forward: _Callable[..., _Any]",
    "module.py:Module.__call__":
        "def __call__(self: _Forward[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R: ...",
    "module.py:Module.__setattr__":
        "def __setattr__(self, name: _str, value: _Any) -> None: ...",
    "containers.py:_Numbered.__getitem__": _ITEMS,
    "containers.py:_Numbered.__iter__": "def __iter__(self) -> _Iterator[_Module]: ...",
    "containers.py:_Numbered.pop": "def pop(self, key: _int | slice) -> _Module: ...",
    "containers.py:ModuleDict.__getitem__": "def __getitem__(self, key: _str) -> _Module: ...",
    "containers.py:ModuleDict.pop": "def pop(self, key: _str) -> _Module: ...",
    "containers.py:ModuleDict.keys": "def keys(self) -> _KeysView[_str]: ...",
    "containers.py:ModuleDict.items": "def items(self) -> _ItemsView[_str, _Module]: ...",
    "containers.py:ModuleDict.values": "def values(self) -> _ValuesView[_Module]: ...",
    "containers.py:Sequential.__init__": """\
@overload
def __init__(self, *args: _Module) -> None: ...
@overload
def __init__(self, arg: _dict[_str, _Module], /) -> None: ...""",
    "containers.py:Sequential.forward": "def forward(self, input: _Any) -> Tensor: ...",
    "linear.py:Identity.__init__": "def __init__(self, *args: _Any, **kwargs: _Any) -> None: ...",
    "recurrent.py:RNN.__init__": _RECURRENT.format(
        more="nonlinearity: _str = ..., ", last=""),
    "recurrent.py:LSTM.__init__": _RECURRENT.format(more="", last="proj_size: _int = 0, "),
    "recurrent.py:GRU.__init__": _RECURRENT.format(more="", last=""),
    "recurrent.py:RNN.forward": _STATE.format(state="Tensor"),
    "recurrent.py:GRU.forward": _STATE.format(state="Tensor"),
    "recurrent.py:LSTM.forward": _STATE.format(state="_tuple[Tensor, Tensor]"),
    "recurrent_cells.py:LSTMCell.forward":
        "def forward(self, input: Tensor, hx: _tuple[Tensor, Tensor] | None = None"
        ") -> _tuple[Tensor, Tensor]: ...",
    "attention/__init__.py:MultiheadAttention.forward": """\
def forward(self, query: Tensor, key: Tensor, value: Tensor,
            key_padding_mask: Tensor | None = None, need_weights: _bool = True,
            attn_mask: Tensor | None = None, average_attn_weights: _bool = True,
            is_causal: _bool = False) -> _tuple[Tensor, Tensor | _Any]: ...""",
    "transformer.py:TransformerEncoderLayer.__init__": "",
    "module_conversion.py:Conversion.to": """\
@overload
def to(self, device: _Device = ..., dtype: _DType = ..., non_blocking: _bool = ...,
       *, memory_format: _Any = ...) -> _Self: ...
@overload
def to(self, dtype: _DType, non_blocking: _bool = ...) -> _Self: ...
@overload
def to(self, tensor: Tensor, non_blocking: _bool = ...) -> _Self: ...""",
    "parameter.py:Parameter.__new__":
        "def __new__(cls, data: Tensor | None = None, requires_grad: _bool = True) -> _Self: ...",
    "parameter.py:Parameter.__init__":
        "def __init__(self, data: Tensor | None = None, requires_grad: _bool = True) -> None: ...",
    "parameter.py:Parameter.__reduce_ex__": "", "parameter.py:Parameter.__torch_function__": "",
}  # fmt: skip
# Parameters of layers that mean another thing than those of functions.
NAMES: dict[str, str] = {
    "momentum": "_float", "module": "_Module", "bias": "_bool", "fill_value": "_float",
    "activation": "_str | _Callable[[Tensor], Tensor]", "custom_encoder": "_Any",
    "custom_decoder": "_Any", "norm": "_Module", "other": "_Any", "key": "_Any", "value": "_Any",
    "a": "_float", "min": "_Any", "max": "_Any", "values": "_Any", "parameters": "_Any",
    "mean": "_float", "std": "_float", "p": "_float", "index": "_Any", "data": "_Any",
    "source": "_Any", "memory": "_Any", "targets": "_Any", "state": "_Any", "input": "_Any",
    "x": "_Any", "y": "_Any", "b": "_Any", "v": "_Any", "count": "_Any", "order": "_Any",
}  # fmt: skip
IN_FORWARD = {"memory": "Tensor"}
EXTRA = {
    "module.py": '''\
class _Forward(_Protocol[_P, _R_co]):
    @property
    def forward(self) -> _Callable[_P, _R_co]: ...
''',
}
# Files of `nn` without a layer; those with one are found.
FILES = """module_conversion module_listing module_state containers parameter init
parameter_containers lazy lazy_batch_norm utils/clip_grad utils/convert_parameters""".split()
