import torch
import torchsde
from given import array, filled


class Sde(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.mu, self.sigma = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def f(self, t, y):
        return self.mu(y)

    def g(self, t, y):
        return self.sigma(y) * 0.0


class Path:
    """A Brownian path whose increments do not depend on the library."""

    shape, dtype, device, levy_area_approximation = (
        (4, 3),
        torch.float32,
        torch.device("cpu"),
        "none",
    )

    def __call__(self, ta, tb=None, return_U=False, return_A=False):
        return array(4, 3, seed=int(float(ta) * 100)) * 0.1


def functions():
    sde = filled(Sde())
    times = torch.linspace(0, 0.3, 4)

    def solved(y):
        with torch.no_grad():
            return torchsde.sdeint(sde, y, times, bm=Path(), method="euler", dt=0.05)

    def trained(y):
        sde.zero_grad()
        loss = torchsde.sdeint(sde, y, times, bm=Path(), method="milstein", dt=0.1).pow(2).mean()
        loss.backward()
        return loss.detach(), sde.mu.weight.grad

    return [("euler", solved, [array(4, 3)]), ("milstein, trained", trained, [array(4, 3)])]
