"""Functions of neural networks without state, with PyTorch's names and signatures; usually imported
as `F`.

In: tensors. Out: tensors. They are written in the op families; this file only gathers them.
"""

# ruff: noqa: F401
from __future__ import annotations

from tracejit.core.ops import out as _out
from tracejit.core.ops import overriding as _overriding
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops.activations import (
    elu,
    gelu,
    hardtanh,
    leaky_relu,
    logsigmoid,
    relu,
    relu6,
    relu_,
    selu,
    silu,
    softplus,
)
from tracejit.core.ops.activations_in_place import (
    celu_,
    elu_,
    hardtanh_,
    leaky_relu_,
    rrelu_,
    selu_,
    threshold_,
)
from tracejit.core.ops.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from tracejit.core.ops.batch_norm import batch_norm, instance_norm
from tracejit.core.ops.bilinear import bilinear
from tracejit.core.ops.classification import cross_entropy, nll_loss
from tracejit.core.ops.composite import scaled_dot_product_attention
from tracejit.core.ops.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from tracejit.core.ops.ctc import ctc_loss
from tracejit.core.ops.distances import (
    cosine_similarity,
    pairwise_distance,
    pdist,
)
from tracejit.core.ops.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from tracejit.core.ops.embedding import embedding, one_hot
from tracejit.core.ops.embedding_bag import embedding_bag
from tracejit.core.ops.fractional_pooling import fractional_max_pool2d, fractional_max_pool3d
from tracejit.core.ops.grid_sampling import (
    affine_grid,
    grid_sample,
)
from tracejit.core.ops.gumbel import gumbel_softmax
from tracejit.core.ops.hard_activations import (
    celu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    mish,
    prelu,
    rrelu,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
)
from tracejit.core.ops.interpolation import (
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from tracejit.core.ops.linalg import linear
from tracejit.core.ops.linear_cross_entropy import linear_cross_entropy
from tracejit.core.ops.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
)
from tracejit.core.ops.margin_losses import (
    cosine_embedding_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    poisson_nll_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from tracejit.core.ops.native_windows import conv_tbc
from tracejit.core.ops.norm_pooling import (
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from tracejit.core.ops.normalization import (
    group_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)
from tracejit.core.ops.padding import (
    pad,
)
from tracejit.core.ops.pixel_shuffle import (
    channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
)
from tracejit.core.ops.pointwise import sigmoid, tanh
from tracejit.core.ops.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from tracejit.core.ops.pooling_with_indices import (
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d_with_indices,
    max_pool1d_with_indices,
    max_pool2d_with_indices,
    max_pool3d_with_indices,
)
from tracejit.core.ops.softmax import log_softmax, softmax, softmin
from tracejit.core.ops.windows import (
    fold,
    unfold,
)
from tracejit.nn.attention_function import multi_head_attention_forward

globals().update(_out.with_out(globals(), _out.FUNCTIONAL))
globals().update(_overriding.answering_all(globals()))

_sealing.seal_all(globals())
