# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from typing import Any
import tracejit
from tracejit.nn import functional as F
from tracejit.nn import init as init
from tracejit.nn.module import Module as Module
from tracejit.nn.parameter import Parameter as Parameter
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _DType, _Device



class Embedding(Module):
    def __init__(self, num_embeddings: _int, embedding_dim: _int, padding_idx: _int | None=None, max_norm: _float | None=None, norm_type: _float=2.0, scale_grad_by_freq: _bool=False, sparse: _bool=False, _weight: _Any=None, _freeze: _bool=False, device: _Device=None, dtype: _DType=None) -> None: ...
    def reset_parameters(self) -> None: ...
    @classmethod
    def from_pretrained(cls, embeddings: _Any, freeze: _bool=True, padding_idx: _int | None=None, max_norm: _float | None=None, norm_type: _float=2.0, scale_grad_by_freq: _bool=False, sparse: _bool=False) -> Embedding: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> _str: ...
    num_embeddings: _int
    embedding_dim: _int
    padding_idx: _int | None
    max_norm: _float | None
    norm_type: _float
    scale_grad_by_freq: _bool
    sparse: _bool
    weight: _Parameter
class EmbeddingBag(Module):
    def __init__(self, num_embeddings: _int, embedding_dim: _int, max_norm: _float | None=None, norm_type: _float=2.0, scale_grad_by_freq: _bool=False, mode: _str='mean', sparse: _bool=False, _weight: _Any=None, include_last_offset: _bool=False, padding_idx: _int | None=None, device: _Device=None, dtype: _DType=None) -> None: ...
    def reset_parameters(self) -> None: ...
    @classmethod
    def from_pretrained(cls, embeddings: _Any, freeze: _bool=True, max_norm: _float | None=None, norm_type: _float=2.0, scale_grad_by_freq: _bool=False, mode: _str='mean', sparse: _bool=False, include_last_offset: _bool=False, padding_idx: _int | None=None) -> EmbeddingBag: ...
    def forward(self, input: Tensor, offsets: Tensor | None=None, per_sample_weights: Tensor | None=None) -> Tensor: ...
    def extra_repr(self) -> _str: ...
    num_embeddings: _int
    embedding_dim: _int
    max_norm: _float | None
    norm_type: _float
    scale_grad_by_freq: _bool
    padding_idx: _int | None
    mode: _str
    sparse: _bool
    include_last_offset: _bool
    weight: _Parameter
