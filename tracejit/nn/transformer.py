"""Transformers: layers of attention and of two linear maps, stacked.

In: (S, N, E) and (T, N, E), or with the batch first, or without one; masks as attention takes them.
Out: tensors of the shape of the first input.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import tracejit
from tracejit.backends.mha import get_fastpath_enabled
from tracejit.nn import functional as F
from tracejit.nn.activation import GELU, ReLU
from tracejit.nn.attention import MultiheadAttention
from tracejit.nn.attention_function import canonical
from tracejit.nn.containers import ModuleList
from tracejit.nn.dropout import Dropout
from tracejit.nn.init import xavier_uniform_
from tracejit.nn.linear import Linear
from tracejit.nn.module import Module
from tracejit.nn.normalization import LayerNorm


def _get_activation_fn(activation: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


class _Layer(Module):
    """Base class of both kinds of layers: attention, and two linear maps with an activation
    between."""

    attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        for name in self.attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **kind
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **kind)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **kind)
        self.norm_first = norm_first
        parts = range(1, len(self.attentions) + 2)  # the two linear maps are one
        for k in parts:
            setattr(self, f"norm{k}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind))
        # after all norms: PyTorch's order of submodules
        for k in parts:
            setattr(self, f"dropout{k}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def _residual(self, x: Any, part: Callable[[Any], Any], norm: Any, dropout: Any) -> Any:
        """Return x plus a part of the layer, normalised before the part or after the sum."""
        if self.norm_first:
            return x + dropout(part(norm(x)))
        return norm(x + dropout(part(x)))

    def _feed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention, then two linear maps; both with dropout, residual and norm.

    d_model, nhead   features E, and the heads that divide them
    dim_feedforward  features between the linear maps; default 2048
    dropout          probability in training; default 0.1
    activation       "relu" (default), "gelu" or a function of tensors
    layer_norm_eps   eps of the norms; default 1e-5
    batch_first      True: (N, L, E) instead of (L, N, E)
    norm_first       True: norms come before attention and maps, not after
    bias             False: no biases; default True

    Input `src` (L, N, E) or (L, E); the output has the same shape. `src_mask` is (L, L) or (N *
    nhead, L, L), `src_key_padding_mask` (N, L); True or -inf hides. Raises AssertionError where the
    heads do not divide E. The source is Vaswani et al., "Attention is all you need" (2017).

    >>> import tracejit
    >>> layer = tracejit.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(tracejit.rand(3, 5, 8)).shape
    tracejit.Size([3, 5, 8])
    """

    attentions = ("self_attn",)

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        known = (F.relu, ReLU), (F.gelu, GELU)
        places = (k for k, (function, layer) in enumerate(known, 1)
                  if self.activation is function or isinstance(self.activation, layer))  # fmt: skip
        self.activation_relu_or_gelu = next(places, 0)

    def forward(
        self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:  # fmt: skip
        src_key_padding_mask = canonical(
            src_key_padding_mask, "src_key_padding_mask", src, src_mask, "src_mask"
        )
        src_mask = canonical(src_mask, "src_mask", src)

        def attend(x: Any) -> Any:
            return self.self_attn(
                x, x, x, attn_mask=src_mask, key_padding_mask=src_key_padding_mask,
                need_weights=False, is_causal=is_causal,
            )[0]  # fmt: skip

        x = self._residual(src, attend, self.norm1, self.dropout1)
        return self._residual(x, self._feed_forward, self.norm2, self.dropout2)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, then two linear maps; each with dropout, residual and
    norm.

    d_model, nhead, ...  as in `TransformerEncoderLayer`

    Inputs are `tgt` (L, N, E) and `memory` (S, N, E), with `batch_first` (N, L, E) and (N, S, E),
    or both without N. The output has the shape of `tgt`. `tgt_mask` is (L, L), `memory_mask` (L,
    S), the padding masks (N, L) and (N, S); True or -inf hides. Raises AssertionError where the
    heads do not divide E.

    >>> import tracejit
    >>> layer = tracejit.nn.TransformerDecoderLayer(8, 2, 16)
    >>> layer(tracejit.rand(4, 3, 8), tracejit.rand(5, 3, 8)).shape
    tracejit.Size([4, 3, 8])
    """

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        def attend(x: Any) -> Any:
            return self.self_attn(
                x, x, x, attn_mask=tgt_mask, key_padding_mask=tgt_key_padding_mask,
                is_causal=tgt_is_causal, need_weights=False,
            )[0]  # fmt: skip

        def look(x: Any) -> Any:
            return self.multihead_attn(
                x, memory, memory, attn_mask=memory_mask,
                key_padding_mask=memory_key_padding_mask, is_causal=memory_is_causal,
                need_weights=False,
            )[0]  # fmt: skip

        x = self._residual(tgt, attend, self.norm1, self.dropout1)
        x = self._residual(x, look, self.norm2, self.dropout2)
        return self._residual(x, self._feed_forward, self.norm3, self.dropout3)


def _get_clones(module: Module, N: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _is_causal(layers: Any, x: Any, mask: Any, told: bool | None) -> bool:
    """Return True if layers are told that a mask hides later positions.

    This package's own layers give the same result either way, so only for others the mask is read.
    """
    if told is not None or mask is None:
        return told is True
    ours = (type(layer) in (TransformerEncoderLayer, TransformerDecoderLayer)
            and type(layer.self_attn) is MultiheadAttention for layer in layers)  # fmt: skip
    if mask.dtype in (tracejit.bool, x.dtype) and all(ours):
        return False
    batch_first = getattr(getattr(layers[0], "self_attn", None), "batch_first", False)
    size = x.shape[1 if x.dim() == 3 and batch_first else 0]
    if tuple(mask.shape) != (size, size):
        return False
    causal = Transformer.generate_square_subsequent_mask(size, mask.device, mask.dtype)
    return bool((mask == causal).all())


class TransformerEncoder(Module):
    """Stack of `num_layers` copies of an encoder layer, and a last norm.

    encoder_layer     layer that is copied
    num_layers        number of copies
    norm              module for the result; None (default): no norm
    enable_nested_tensor  True: results for padding at the end are 0, without gradients, after
                      `eval()`, with a padding mask and no other mask
    mask_check        True: look at padding first, and clear it only if all of it is at the end

    Input `src` (L, N, E) or (L, E), with `batch_first` (N, L, E); the output has the same shape.
    `mask` is (L, L), `src_key_padding_mask` (N, L).

    >>> import tracejit
    >>> layer = tracejit.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> tracejit.nn.TransformerEncoder(layer, 2)(tracejit.rand(3, 5, 8)).shape
    tracejit.Size([3, 5, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        missing = _why_padding_stays(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not missing
        if enable_nested_tensor and missing:
            warnings.warn("enable_nested_tensor is True, but self.use_nested_tensor is False "
                          f"because encoder_layer{missing}", stacklevel=2)  # fmt: skip

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:  # fmt: skip
        src_key_padding_mask = canonical(
            src_key_padding_mask, "src_key_padding_mask", src, mask, "mask"
        )
        mask = canonical(mask, "mask", src)
        cleared = self._cleared(src, mask, src_key_padding_mask)
        is_causal = _is_causal(self.layers, src, mask, is_causal)
        for layer in self.layers:
            src = layer(
                src, src_mask=mask, src_key_padding_mask=src_key_padding_mask,
                is_causal=is_causal,
            )  # fmt: skip
        if cleared is not None:
            src = src.masked_fill(cleared.unsqueeze(-1), 0.0)
        return src if self.norm is None else self.norm(src)

    def _cleared(self, src: Any, mask: Any, padding: Any) -> Any:
        """Return the places (N, S) where the layers' result becomes 0. None: nowhere."""
        first = self.layers[0]
        if (not get_fastpath_enabled() or not getattr(self, "use_nested_tensor", False)
                or first.training or src.dim() != 3 or padding is None or mask is not None
                or tracejit.is_autocast_enabled()):  # fmt: skip
            return None
        tensors = [src, *first.parameters()]
        # PyTorch leaves padding out only where no gradients are recorded
        if tracejit.is_grad_enabled() and any(x.requires_grad for x in tensors):
            return None
        left_out = padding != 0
        if not getattr(self, "mask_check", True):
            return left_out
        # True if no element stands behind padding
        return left_out & (left_out[:, 1:] | ~left_out[:, :-1]).all()


def _why_padding_stays(layer: Any) -> str | None:
    """Return the property that an encoder layer lacks for PyTorch to skip padding, or None."""
    if not isinstance(layer, TransformerEncoderLayer):
        return " was not TransformerEncoderLayer"
    attention = layer.self_attn
    checks = {
        ".norm_first was True": layer.norm_first,
        ".self_attn.batch_first was not True(use batch_first for better inference performance)":
            not attention.batch_first,
        ".self_attn._qkv_same_embed_dim was not True": not attention._qkv_same_embed_dim,
        ".self_attn was passed bias=False": attention.in_proj_bias is None,
        ".activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
        ".norm1.eps was not equal to encoder_layer.norm2.eps": layer.norm1.eps != layer.norm2.eps,
        ".self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }  # fmt: skip
    return next((missing for missing, failed in checks.items() if failed), None)


class TransformerDecoder(Module):
    """Stack of `num_layers` copies of a decoder layer, and a last norm.

    decoder_layer  layer that is copied
    num_layers     number of copies
    norm           module for the result; None (default): no norm

    Inputs are `tgt` (L, N, E) and `memory` (S, N, E), with `batch_first` (N, L, E) and (N, S, E),
    or both without N. The output has the shape of `tgt`. Masks are those of
    `TransformerDecoderLayer`.

    >>> import tracejit
    >>> decoder = tracejit.nn.TransformerDecoder(tracejit.nn.TransformerDecoderLayer(8, 2, 16), 2)
    >>> decoder(tracejit.rand(4, 3, 8), tracejit.rand(5, 3, 8)).shape
    tracejit.Size([4, 3, 8])
    """

    def __init__(
        self, decoder_layer: Module, num_layers: int, norm: Module | None = None
    ) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        tgt_is_causal = _is_causal(self.layers, tgt, tgt_mask, tgt_is_causal)
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder, as in Vaswani et al., "Attention is all you need" (2017).

    d_model, nhead    features E, and the heads that divide them; defaults 512 and 8
    num_encoder_layers, num_decoder_layers  default 6
    custom_encoder, custom_decoder  modules that take their places; default None
    dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias  as in
                      `TransformerEncoderLayer`

    Inputs are `src` (S, N, E) and `tgt` (L, N, E), with `batch_first` (N, S, E) and (N, L, E), or
    both without N. The output has the shape of `tgt`. Masks are those of both kinds of layers.
    Raises RuntimeError where batches or features of both differ.

    >>> import tracejit
    >>> model = tracejit.nn.Transformer(8, 2, 1, 1, 16)
    >>> model(tracejit.rand(5, 3, 8), tracejit.rand(4, 3, 8)).shape
    tracejit.Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        options = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias,
        )  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*options, **kind), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*options, **kind), num_decoder_layers, norm()
        )
        for parameter in self.parameters():
            if parameter.dim() > 1:
                xavier_uniform_(parameter)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """Return (sz, sz), -inf above the diagonal: no position attends to a later one."""
        whole = tracejit.full((sz, sz), -math.inf, device=device, dtype=dtype)
        return tracejit.triu(whole, diagonal=1)
