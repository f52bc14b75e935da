"""Eleven kinds of mistake, one at the line that names it; type checkers are shown this file."""

import tracejit
from tracejit import Tensor, nn
from tracejit.optim import Adam


@tracejit.script
def norm(x: Tensor) -> Tensor:
    return x.square().sum().sqrt()


def mistakes(x: Tensor, model: nn.Linear) -> None:
    tracejit.zeros(2, 3, dtype="float32")  # 1: wrong dtype argument
    x.summ()  # 2: misspelt method
    tracejit.softmax(x, dimension=1)  # 3: wrong keyword
    tracejit.cat()  # 4: missing argument
    tracejit.add(x, "1.0")  # 5: str for a number
    x.sum().item().backward()  # 6: result of .item() used as a tensor
    steps: int = norm(x)  # 7: wrong return type of a scripted function
    rows, columns = x.shape()  # 8: calling a property
    Adam(model.parameters(), learning_rate=1e-3)  # 9: unknown optimizer option
    x[0.5]  # 10: indexing by a float
    model(model)  # 11: a module where a tensor is needed
    print(steps, rows, columns)
