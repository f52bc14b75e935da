"""Uses of `script`, `trace` and `compile`: each line with a number is a mistake."""

import tracejit
from tracejit import Tensor, nn


@tracejit.script
def plain(x: Tensor, scale: float = 1.0) -> Tensor:
    return x * scale


@tracejit.script(fullgraph=True, numerics="eager")
def optioned(x: Tensor) -> tuple[Tensor, int]:
    return x, 1


@tracejit.compile(mode="reduce-overhead")
def compiled(x: Tensor) -> Tensor:
    return x


@tracejit.jit.trace
def traced(x: Tensor) -> Tensor:
    return x


class Net(nn.Module):
    def forward(self, x: Tensor, times: int = 1) -> Tensor:
        return self.twice(x) * times

    @tracejit.script
    def twice(self, x: Tensor) -> Tensor:
        return x + x


def right(x: Tensor) -> list[Tensor]:
    net = tracejit.script(Net())
    exact = tracejit.script(Net(), dynamic=False)
    by_trace = tracejit.trace(plain, (x,))
    print(plain.report().compiles, plain.graphs, plain.graph(x, scale=2.0), net.twice.report())
    print(tracejit.trace(x).item(), optioned(x)[1] + 1, tracejit.compile(net)(x).shape)
    return [plain(x, scale=2), compiled(x), traced(x), net(x, times=2), exact(x), by_trace(x),
            net.twice(x), Net.twice(net, x)]


def wrong(x: Tensor) -> None:
    plain(x, scale="2")  # 1
    plain()  # 2
    plain.reports()  # 3
    optioned(x).sum()  # 4
    compiled(1)  # 5
    traced(x, x)  # 6
    tracejit.script(Net())(x, times="3")  # 7
    Net().twice("x")  # 8
    tracejit.script(plain, fulgraph=True)  # 9
    Net()(y=x)  # 10
