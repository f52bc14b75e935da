"""PyTorch's `torch._inductor`: switches of its code generator, which programs set.

In: any setting. Out: nothing changes; `tracejit.config` has the settings there are.
"""


class _Settings:
    """Takes any setting and keeps it; a name that was never set is another group of settings.

    >>> config.triton.unique_kernel_names = True
    >>> config.triton.unique_kernel_names
    True
    """

    def __getattr__(self, name: str) -> "_Settings":
        # Copying and pickling ask for special methods, which are no settings.
        if name.startswith("__"):
            raise AttributeError(name)
        group = self.__dict__[name] = _Settings()
        return group


config = _Settings()
