# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from builtins import tuple as _tuple
import copy
import math
import warnings
from collections.abc import Callable
from typing import Any
import tracejit
from tracejit.backends.mha import get_fastpath_enabled as get_fastpath_enabled
from tracejit.nn import functional as F
from tracejit.nn.activation import GELU as GELU, ReLU as ReLU
from tracejit.nn.attention import MultiheadAttention as MultiheadAttention
from tracejit.nn.attention_function import canonical as canonical
from tracejit.nn.containers import ModuleList as ModuleList
from tracejit.nn.dropout import Dropout as Dropout
from tracejit.nn.init import xavier_uniform_ as xavier_uniform_
from tracejit.nn.linear import Linear as Linear
from tracejit.nn.module import Module as Module
from tracejit.nn.normalization import LayerNorm as LayerNorm
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _IntOrInts, _DType, _Device



def _get_activation_fn(activation: _str | Callable[[_Any], _Any]) -> Callable[[_Any], _Any]: ...
class _Layer(Module):
    attentions: _tuple[_str, ...]
    def __init__(self, d_model: _int, nhead: _int, dim_feedforward: _int=2048, dropout: _float=0.1, activation: _str | Callable[[_Any], _Any]=..., layer_norm_eps: _float=1e-05, batch_first: _bool=False, norm_first: _bool=False, bias: _bool=True, device: _Device=None, dtype: _DType=None) -> None: ...
    def _residual(self, x: _Any, part: Callable[[_Any], _Any], norm: _Module, dropout: _Any) -> _Any: ...
    def _feed_forward(self, x: _Any) -> _Any: ...
    norm_first: _bool
class TransformerEncoderLayer(_Layer):
    attentions: _Any
    def forward(self, src: Tensor, src_mask: Tensor | None=None, src_key_padding_mask: Tensor | None=None, is_causal: _bool=False) -> Tensor: ...
class TransformerDecoderLayer(_Layer):
    attentions: _Any
    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None=None, memory_mask: Tensor | None=None, tgt_key_padding_mask: Tensor | None=None, memory_key_padding_mask: Tensor | None=None, tgt_is_causal: _bool=False, memory_is_causal: _bool=False) -> Tensor: ...
def _get_clones(module: Module, N: _int) -> ModuleList: ...
def _is_causal(layers: _Any, x: _Any, mask: Tensor, told: _bool | None) -> _bool: ...
class TransformerEncoder(Module):
    def __init__(self, encoder_layer: Module, num_layers: _int, norm: Module | None=None, enable_nested_tensor: _bool=True, mask_check: _bool=True) -> None: ...
    def forward(self, src: Tensor, mask: Tensor | None=None, src_key_padding_mask: Tensor | None=None, is_causal: _bool | None=None) -> Tensor: ...
    def _cleared(self, src: Tensor, mask: Tensor, padding: _IntOrInts | _str) -> _Any: ...
    num_layers: _int
    norm: Module | None
    enable_nested_tensor: _bool
    mask_check: _bool
def _why_padding_stays(layer: _Any) -> _str | None: ...
class TransformerDecoder(Module):
    def __init__(self, decoder_layer: Module, num_layers: _int, norm: Module | None=None) -> None: ...
    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None=None, memory_mask: Tensor | None=None, tgt_key_padding_mask: Tensor | None=None, memory_key_padding_mask: Tensor | None=None, tgt_is_causal: _bool | None=None, memory_is_causal: _bool=False) -> Tensor: ...
    num_layers: _int
    norm: Module | None
class Transformer(Module):
    def __init__(self, d_model: _int=512, nhead: _int=8, num_encoder_layers: _int=6, num_decoder_layers: _int=6, dim_feedforward: _int=2048, dropout: _float=0.1, activation: _str | Callable[[_Any], _Any]=..., custom_encoder: _Any=None, custom_decoder: _Any=None, layer_norm_eps: _float=1e-05, batch_first: _bool=False, norm_first: _bool=False, bias: _bool=True, device: _Device=None, dtype: _DType=None) -> None: ...
    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None=None, tgt_mask: Tensor | None=None, memory_mask: Tensor | None=None, src_key_padding_mask: Tensor | None=None, tgt_key_padding_mask: Tensor | None=None, memory_key_padding_mask: Tensor | None=None, src_is_causal: _bool | None=None, tgt_is_causal: _bool | None=None, memory_is_causal: _bool=False) -> Tensor: ...
    @staticmethod
    def generate_square_subsequent_mask(sz: _int, device: _Device=None, dtype: _DType=None) -> _Any: ...
    d_model: _int
    nhead: _int
    batch_first: _bool
