import higher
import torch
from given import array, filled


def functions():
    net = filled(
        torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)), 0.4
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def adapted(x, y):
        net.zero_grad()
        with higher.innerloop_ctx(net, optimizer, copy_initial_weights=False) as (inner, inner_opt):
            for _ in range(2):
                inner_opt.step((inner(x) - y).pow(2).mean())
            loss = (inner(x) - y).abs().mean()
            loss.backward()
        return loss.detach(), net[0].weight.grad

    return [("two inner steps", adapted, [array(5, 3), array(5, 1, seed=1)])]
