import einops
import torch
from einops.layers.torch import Rearrange, Reduce
from given import array, filled


def functions():
    net = filled(
        torch.nn.Sequential(
            Rearrange("b c (h s) (w t) -> b (c s t) h w", s=2, t=2),
            torch.nn.Conv2d(12, 4, 1),
            Reduce("b c h w -> b c", "mean"),
        )
    )

    def mixed(x):
        y = einops.rearrange(x, "b c h w -> b (h w) c")
        z = einops.reduce(y, "b n c -> b c", "max") + einops.einsum(y, y, "b n c, b n c -> b c")
        return einops.repeat(z, "b c -> b c k", k=2), einops.pack([z, z], "b *")[0]

    return [("layers", net, [array(2, 3, 4, 4)]), ("functions", mixed, [array(2, 3, 4, 4)])]
