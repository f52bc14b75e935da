"""What is done to all parameters at once; PyTorch's `nn.utils`."""

from tracejit.nn.utils import rnn
from tracejit.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_, get_total_norm
from tracejit.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

__all__ = ["clip_grad_norm_", "clip_grad_value_", "get_total_norm", "parameters_to_vector", "rnn",
           "vector_to_parameters"]  # fmt: skip
