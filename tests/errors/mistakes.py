"""Programs with a mistake, as users write them, and how long their tracebacks are.

In: a table of programs over `torch` and `jit`. Out: what a program prints when it fails, run with
one of the packages, eagerly or captured. Called by `test_tracebacks.py`.
"""

from __future__ import annotations

import linecache
import sys
import textwrap
import traceback
from pathlib import Path
from typing import Any

# Each program calls `f`, which is captured in the one run and plain in the other.
PROGRAMS: dict[str, str] = {}


def program(name: str, text: str, calls: int = 1) -> None:
    PROGRAMS[name] = textwrap.dedent(text).strip() + "\n"


def simple(name: str, body: str, *arguments: str) -> None:
    """Add a program whose function has these lines, called with these arguments."""
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    names = ", ".join("abcd"[: len(arguments)])
    program(name, f"@jit\ndef f({names}):\n{lines}\n\n\nf({', '.join(arguments)})")


simple("matmul of wrong shapes", "c = a + 1\nreturn c @ b", "torch.ones(2, 3)", "torch.ones(2, 3)")
simple("add of wrong shapes", "return a + b", "torch.ones(2, 3)", "torch.ones(2, 4)")
simple("cat of wrong shapes", "return torch.cat([a, b])", "torch.ones(2, 3)", "torch.ones(2, 4)")
simple("view of wrong size", "return (a * 2).view(4, 2)", "torch.ones(2, 3)")
simple("reshape of wrong size", "return a.reshape(5)", "torch.ones(2, 3)")
simple("index past the end", "return a[5]", "torch.ones(2, 3)")
simple("index found wrong by value", "return a[b]", "torch.ones(2, 3)", "torch.tensor([0, 7])")
simple("gather past the end", "return torch.gather(a, 0, b) * 2", "torch.ones(2, 3)",
       "torch.tensor([[0, 1, 9]])")
simple("wrong dtype of matmul", "return a @ b", "torch.ones(2, 3)",
       "torch.ones(3, 2, dtype=torch.float64)")
simple("no such device", "return a.to('nowhere')", "torch.ones(2)")
simple("missing argument", "return torch.matmul(a)", "torch.ones(2, 3)")
simple("unknown keyword", "return torch.sum(a, dims=1)", "torch.ones(2, 3)")
simple("unknown keyword of a method", "return a.sum(dims=1)", "torch.ones(2, 3)")
simple("unknown keyword of a function", "return torch.nn.functional.softmax(a, dims=1)",
       "torch.ones(2, 3)")
simple("wrong type", "return torch.matmul(a, 'b')", "torch.ones(2, 3)")
simple("no tensor", "return torch.exp(a)", "'three'")
simple("unknown name", "return a.summ()", "torch.ones(2, 3)")
simple("dimension out of range", "return a.sum(3)", "torch.ones(2, 3)")
simple("item of many", "return a.item()", "torch.ones(2, 3)")
simple("truth of many", "if a > 0:\n    return a\nreturn -a", "torch.ones(2, 3)")
simple("loss of wrong shapes", "return torch.nn.functional.cross_entropy(a, b)",
       "torch.ones(4, 3)", "torch.tensor([0, 1, 2])")
simple("class out of range", "return torch.nn.functional.cross_entropy(a, b)",
       "torch.ones(2, 3)", "torch.tensor([0, 8])")
simple("embedding past the end", "return torch.nn.functional.embedding(b, a)",
       "torch.ones(4, 3)", "torch.tensor([1, 4])")
simple("backward without grad", "return a.sum().backward()", "torch.ones(2)")
simple("backward of many", "return (a * 2).backward()", "torch.ones(2, requires_grad=True)")
simple("in place on a leaf", "a.add_(1)\nreturn a", "torch.ones(2, requires_grad=True)")
simple("user's own error", "if a.shape[0] == 2:\n    raise ValueError('two rows')\nreturn a",
       "torch.ones(2)")
simple("an assert", "assert a.ndim == 2, 'two dimensions, please'\nreturn a", "torch.ones(2)")
simple("a key that is not there", "return a * b['scale']", "torch.ones(2)", "{'shift': 1.0}")
simple("an attribute of None", "return a * b.scale", "torch.ones(2)", "None")
program("raised again by the user", """
    @jit
    def f(a, b):
        try:
            return a @ b
        except RuntimeError:
            raise


    f(torch.ones(2, 3), torch.ones(2, 3))
    """)
program("another error from the user's handler", """
    @jit
    def f(a, b):
        try:
            return a @ b
        except RuntimeError as error:
            raise ValueError("cannot multiply") from error


    f(torch.ones(2, 3), torch.ones(2, 3))
    """)
program("backward twice", """
    @jit
    def f(a):
        return (a.exp() * a).sum()


    x = torch.ones(3, requires_grad=True)
    loss = f(x)
    loss.backward()
    loss.backward()
    """)
program("modified in place", """
    @jit
    def f(a):
        b = a.exp()
        c = b * b
        b.add_(1)
        return c.sum()


    f(torch.ones(3, requires_grad=True)).backward()
    """)
program("saved tensor modified outside", """
    @jit
    def f(a, b):
        return (a * b).sum()


    x, w = torch.ones(3, requires_grad=True), torch.ones(3)
    loss = f(x, w)
    w.mul_(2)
    loss.backward()
    """)
program("wrong gradient of a result", """
    @jit
    def f(a):
        return a * 2


    f(torch.ones(3, requires_grad=True)).backward(torch.ones(4))
    """)
program("state dict of another model", """
    @jit
    def f(a):
        return a


    f(torch.ones(1))
    model = torch.nn.Linear(3, 2)
    model.load_state_dict({"weight": torch.ones(2, 4), "scale": torch.ones(2)})
    """)
program("input of a wrong size", """
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    f = jit(net)
    f(torch.ones(2, 3))
    """)
program("channels of a convolution", """
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 8, 3)

        def forward(self, x):
            return self.conv(x).relu()


    net = Net()
    f = jit(net)
    f(torch.ones(1, 4, 8, 8))
    """)
program("a data set that fails", """
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, k):
            return torch.ones(2, 3) @ torch.ones(2, k + 1)


    @jit
    def f(a):
        return a * 2


    for batch in torch.utils.data.DataLoader(Data(), batch_size=4):
        f(batch)
    """)
program("samples of different sizes", """
    @jit
    def f(a):
        return a * 2


    data = [torch.ones(2), torch.ones(3)]
    for batch in torch.utils.data.DataLoader(data, batch_size=2):
        f(batch)
    """)
program("a hook that fails", """
    @jit
    def f(a):
        return (a * 2).sum()


    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda grad: grad @ torch.ones(4))
    f(x).backward()
    """)
program("a hook of a module that fails", """
    net = torch.nn.Linear(3, 2)
    net.register_forward_hook(lambda module, inputs, output: output.view(7))
    f = jit(net)
    f(torch.ones(2, 3))
    """)
program("a Function whose forward fails", """
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x @ torch.ones(5)

        @staticmethod
        def backward(ctx, grad):
            return grad


    @jit
    def f(a):
        return Scale.apply(a)


    f(torch.ones(2, 3, requires_grad=True))
    """)
program("a Function whose backward fails", """
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad.view(5)


    @jit
    def f(a):
        return Scale.apply(a).sum()


    f(torch.ones(2, 3, requires_grad=True)).backward()
    """)
program("a replayed call", """
    @jit
    def f(a, b):
        return (a * 2)[b] + 1


    for k in range(8):
        f(torch.ones(4), torch.tensor([k]))
    """)
program("a call that is recompiled", """
    @jit
    def f(a, b):
        return (a + 1) @ b


    f(torch.ones(2, 3), torch.ones(3, 2))
    f(torch.ones(3, 3), torch.ones(3, 2))
    f(torch.ones(3, 4), torch.ones(3, 2))
    """)
program("a function of the user's within", """
    def scaled(x, w):
        return x * w


    @jit
    def f(a, b):
        c = a.exp()
        return scaled(c, b).sum()


    f(torch.ones(3), torch.ones(4))
    """)
program("a function in vmap", """
    def dot(x, y):
        return x @ y


    @jit
    def f(a, b):
        return torch.func.vmap(dot)(a, b)


    f(torch.ones(4, 3), torch.ones(4, 2))
    """)
program("a closure of an optimizer", """
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)


    @jit
    def f(a):
        return (w * a).sum()


    def closure():
        optimizer.zero_grad()
        loss = f(torch.ones(4))
        loss.backward()
        return loss


    optimizer.step(closure)
    """)
program("optimizer without parameters", """
    @jit
    def f(a):
        return a


    torch.optim.SGD([], lr=0.1)
    """)
program("unknown keyword of a layer", """
    @jit
    def f(a):
        return a


    torch.nn.Linear(2, 3, biass=False)
    """)
program("a file that is not there", """
    @jit
    def f(a):
        return a


    f(torch.load("nowhere.pt"))
    """)


def plain(function: Any) -> Any:
    return function


def printed(name: str, torch: Any, jit: Any, folder: Path) -> list[str]:
    """Return the lines that a program prints when it fails."""
    path = folder / f"{name.replace(' ', '_').replace(chr(39), '')}.py"
    path.write_text(PROGRAMS[name])
    linecache.checkcache(str(path))
    return shown(failure(path, torch, jit))


def failure(path: Path, torch: Any, jit: Any) -> BaseException:
    """Return the exception that a program raises; its traceback begins in the program."""
    code = compile(path.read_text(), str(path), "exec")
    try:
        exec(code, {"torch": torch, "jit": jit, "__name__": "program"})
    except Exception as error:
        assert error.__traceback__ is not None
        error.__traceback__ = error.__traceback__.tb_next
        return error
    raise AssertionError(f"{path.stem}: nothing was raised")


def shown(error: BaseException) -> list[str]:
    return "".join(traceback.format_exception(error)).splitlines()


def last_line(error: BaseException) -> str:
    """Return the type and text of an error, without notes."""
    return "".join(traceback.format_exception_only(type(error), error)).strip()


def main() -> None:
    """Print how many lines each program prints, with each package."""
    import importlib
    import tempfile
    import warnings

    warnings.simplefilter("ignore")
    ours = importlib.import_module("tracejit")
    theirs = importlib.import_module("torch")
    chosen = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen or PROGRAMS:
            rows = [printed(name, theirs, plain, Path(folder)),
                    printed(name, ours, plain, Path(folder)),
                    printed(name, ours, ours.script, Path(folder))]
            print(*map(len, rows), name, sep="\t")
            if chosen:
                print(*("\n".join(["-" * 80, *row]) for row in rows), sep="\n")


if __name__ == "__main__":
    main()
