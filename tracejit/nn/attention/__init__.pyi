# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from builtins import tuple as _tuple
from typing import Any
import tracejit
from tracejit.nn import functional as F
from tracejit.nn.attention_backends import SDPBackend as SDPBackend, sdpa_kernel as sdpa_kernel
from tracejit.nn.init import constant_ as constant_, xavier_normal_ as xavier_normal_, xavier_uniform_ as xavier_uniform_
from tracejit.nn.linear import Linear as Linear
from tracejit.nn.module import Module as Module
from tracejit.nn.parameter import Parameter as Parameter
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _DType, _Device



WARN_FOR_UNFUSED_KERNELS: _bool
class NonDynamicallyQuantizableLinear(Linear):
    ...
class MultiheadAttention(Module):
    bias_k: _Any
    bias_v: _Any
    def __init__(self, embed_dim: _int, num_heads: _int, dropout: _float=0.0, bias: _bool=True, add_bias_kv: _bool=False, add_zero_attn: _bool=False, kdim: _int | None=None, vdim: _int | None=None, batch_first: _bool=False, device: _Device=None, dtype: _DType=None) -> None: ...
    def _reset_parameters(self) -> None: ...
    def forward(self, query: Tensor, key: Tensor, value: Tensor,
                key_padding_mask: Tensor | None = None, need_weights: _bool = True,
                attn_mask: Tensor | None = None, average_attn_weights: _bool = True,
                is_causal: _bool = False) -> _tuple[Tensor, Tensor | _Any]: ...
    embed_dim: _int
    num_heads: _int
    dropout: _float
    batch_first: _bool
    add_zero_attn: _bool
    in_proj_weight: _Parameter
    in_proj_bias: _Parameter
