"""PyTorch's `torch.fx.experimental.proxy_tensor`: programs ask it for a graph of proxies. None is
made."""


def get_proxy_mode() -> None:
    """Return None: capture works on tensors.

    >>> get_proxy_mode() is None
    True
    """
