"""PyTorch's `torch.utils.model_zoo`, the older place of functions in `hub`."""

from tracejit.hub import load_state_dict_from_url

load_url = load_state_dict_from_url
