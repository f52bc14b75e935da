"""Types under PyTorch's `torch.jit.annotations`, from where programs import them."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035
