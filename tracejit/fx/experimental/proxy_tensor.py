"""PyTorch's `torch.fx.experimental.proxy_tensor`: whether a graph is made of proxies. None is."""


def get_proxy_mode() -> None:
    """None: capture works on tensors.

    >>> get_proxy_mode() is None
    True
    """
