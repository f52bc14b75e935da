import torch
from given import array, filled
from torchdiffeq import odeint, odeint_adjoint


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
        )

    def forward(self, t, y):
        return self.net(y**3) - y


def functions():
    field = filled(Field(), 0.5)
    times = torch.linspace(0.0, 1.0, 5)

    def trained(y):
        field.zero_grad()
        loss = odeint(field, y, times, method="rk4").pow(2).mean()
        loss.backward()
        return loss.detach(), field.net[0].weight.grad

    def adaptive(y):
        return odeint(field, y, times, rtol=1e-5, atol=1e-6)

    def adjoint(y):
        field.zero_grad()
        loss = odeint_adjoint(field, y, times, method="midpoint").pow(2).mean()
        loss.backward()
        return loss.detach(), field.net[2].bias.grad

    y = array(4, 2)
    return [("rk4, trained", trained, [y]), ("dopri5", adaptive, [y]), ("adjoint", adjoint, [y])]
