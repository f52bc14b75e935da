"""Optimizers around their formulas, as PyTorch has it: options and their errors, hooks, updates on
the tape; and Muon, whose steps are computed in bfloat16."""

import inspect

import numpy as np
import pytest

import tracejit
from tracejit.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
OTHERS = ("Optimizer", "lr_scheduler", "swa_utils")
KINDS = [name for name in tracejit.optim.__all__ if name not in OTHERS]


def both(run):
    """What `run(library)` gives in both libraries, as it is or as an error."""
    seen = []
    for library in (tracejit, torch):
        try:
            seen.append(run(library))
        except Exception as error:
            text = str(error).replace("torch.", "tracejit.")
            seen.append(f"{type(error).__name__}: {text}")
    return seen


def test_all_classes_are_there():
    found = {n for n, kind in vars(torch.optim).items() if inspect.isclass(kind)}
    assert set(KINDS) | {"Optimizer"} == found


@pytest.mark.parametrize("name", KINDS)
def test_arguments(name):
    mine, theirs = both(
        lambda library: [
            (p.name, p.default, p.kind)
            for p in inspect.signature(getattr(library.optim, name)).parameters.values()
        ]
    )
    assert mine == theirs


OPTIONS = [
    {"lr": -1}, {"lr": [1.0, 1.0]}, {"lr": [0.1]}, {"weight_decay": -1}, {"eps": -1},
    {"eps": (-1, 1)}, {"eps": (None, -1)}, {"d": 0.5}, {"beta2_decay": 1}, {"momentum": -1},
    {"betas": (2, 0)}, {"betas": (0, 2)}, {"adjust_lr_fn": "x"}, {"ns_steps": 100},
    {"ns_coefficients": (1, 2)}, {"foreach": True, "fused": True}, {"foreach": True},
    {"differentiable": True, "fused": True}, {"foreach": True, "lr": [0.1]}, {"fused": True},
    {"lr_decay": -1}, {"initial_accumulator_value": -1}, {"alpha": -1}, {"etas": (1, 1)},
    {"momentum_decay": -1}, {"rho": 2}, {"nesterov": True}, {"differentiable": True},
    {"maximize": True},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(options):
    """Of each class that has them: what is refused, when, and in which words."""

    def run(library, name):
        given = {k: library.tensor(v) if type(v) is list else v for k, v in options.items()}
        p = library.nn.Parameter(library.ones(2, 2))
        optimizer = getattr(library.optim, name)([p], **given)
        p.grad = library.ones(2, 2)
        optimizer.step()
        return "taken"

    if type(options.get("eps")) is tuple:  # that of Adafactor
        options = {"beta2_decay": -0.5, **options}
    taking = [n for n in KINDS if n != "LBFGS" and set(options) <= set(
        inspect.signature(getattr(torch.optim, n)).parameters)]  # fmt: skip
    assert taking
    for name in taking:
        mine, theirs = both(lambda library, name=name: run(library, name))
        assert mine == theirs, name


def test_muon_takes_matrices():
    for shape in ((3,), (2, 2, 2)):
        mine, theirs = both(
            lambda library, s=shape: library.optim.Muon([library.nn.Parameter(library.ones(s))])
        )
        assert mine == theirs and "only supports 2D" in mine


MUON = [
    {"lr": 0.1},
    {"lr": 0.1, "weight_decay": 0.0, "nesterov": False, "momentum": 0.5},
    {"lr": 0.05, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3},
]


def muon_steps(library, options, script=lambda step: step):
    rng = np.random.default_rng(0)
    shapes = ((4, 3), (3, 5))
    ps = [library.nn.Parameter(library.tensor(rng.normal(size=s))) for s in shapes]
    optimizer = library.optim.Muon(ps, **options)

    def step(x):
        optimizer.zero_grad()
        (library.tanh(x @ ps[0]) @ ps[1]).square().mean().backward()
        optimizer.step()

    step, seen = script(step), []
    for batch in rng.normal(size=(10, 8, 4)):
        step(library.tensor(batch))
        seen.append([p.detach().numpy().copy() for p in ps])
        optimizer.param_groups[0]["lr"] *= 0.9
    return seen, optimizer, step


@pytest.mark.parametrize("options", MUON, ids=str)
def test_muon(options):
    (mine, ours, _), (theirs, expected, _) = both(lambda library: muon_steps(library, options))
    assert ours.state_dict()["param_groups"] == expected.state_dict()["param_groups"]
    assert list(ours.state_dict()["state"][0]) == list(expected.state_dict()["state"][0])
    for a, b in zip(mine, theirs):
        for p, q in zip(a, b):
            np.testing.assert_allclose(p, q, atol=1e-6, rtol=0)
    # A kernel adds in another order, and bfloat16 has 8 bits: later steps go apart.
    captured, _, step = muon_steps(
        tracejit, options, lambda step: tracejit.script(step, mode="graph")
    )
    for p, q in zip(captured[-1], mine[-1]):
        np.testing.assert_allclose(p, q, atol=0.3 * options["lr"], rtol=0)
    assert (step.report().compiles, step.report().breaks) == (1, [])


def hooked(library, returned=None):
    p = library.nn.Parameter(library.ones(1))
    optimizer, seen = library.optim.SGD([p], lr=1.0), []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", len(args))))
    optimizer.register_step_pre_hook(lambda o, args, kwargs: returned and returned(o, args))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", kwargs)) or 3)
    gone = optimizer.register_step_post_hook(lambda *args: seen.append("gone"))
    gone.remove()
    p.grad = library.ones(1)
    seen.append(optimizer.step(lambda: 7))
    return seen, p.item()


def test_hooks_of_steps():
    mine, theirs = both(hooked)
    assert mine == theirs and mine[0] == [("pre", 2), ("post", {}), 7]
    replacing = lambda o, args: ((args[0], lambda: 8), {})  # noqa: E731
    mine, theirs = both(lambda library: hooked(library, replacing))
    assert mine == theirs and mine[0][-1] == 8
    wrong = both(lambda library: hooked(library, lambda o, args: 3))
    text = "must return None or a tuple of (new_args, new_kwargs), but got 3."
    assert all(text in error for error in wrong)


def test_hooks_of_all_optimizers():
    """Also around the `step` of a user's class, once where that calls the base class's."""

    class Twice(tracejit.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            return super().step(closure)

    p, seen = tracejit.nn.Parameter(tracejit.ones(1)), []
    p.grad = tracejit.ones(1)
    handles = [
        register_optimizer_step_pre_hook(lambda *args: seen.append("before")),
        register_optimizer_step_post_hook(lambda *args: seen.append("after")),
    ]
    optimizer = Twice([p], lr=0.25)
    optimizer.register_step_pre_hook(lambda *args: seen.append("own"))
    optimizer.step()
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert seen == ["before", "own", "after", "own"] and p.item() == 0.0


def test_hooks_under_script():
    seen = []
    for script in (lambda step: step, lambda step: tracejit.script(step, mode="graph")):
        p = tracejit.nn.Parameter(tracejit.ones(1))
        optimizer = tracejit.optim.SGD([p], lr=0.25)
        rows = []

        def halve(o, args, kwargs, p=p):
            p.grad.mul_(0.5)

        def step(x, p=p, optimizer=optimizer):
            optimizer.zero_grad()
            (p * x).sum().backward()
            optimizer.step()

        optimizer.register_step_pre_hook(halve)
        step = script(step)
        for k in range(4):
            step(tracejit.ones(1))
            rows.append(p.item())
            if k == 1:  # noticed by what was compiled before
                optimizer.register_step_post_hook(lambda o, args, kwargs, p=p: p.data.mul_(2))
        seen.append(rows)
    assert seen[0] == seen[1] == [0.875, 0.75, 1.25, 2.25]


def test_hooks_of_state_dicts():
    def run(library):
        p, q = (library.nn.Parameter(library.ones(1)) for _ in range(2))
        optimizer, seen = library.optim.SGD([p, q], lr=1.0), []
        saved = optimizer.state_dict()
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("before"))
        optimizer.register_state_dict_post_hook(lambda o, state: {**state, "x": 1})
        optimizer.register_state_dict_post_hook(lambda o, s: seen.append(list(s)), prepend=True)
        optimizer.register_load_state_dict_pre_hook(lambda o, s: seen.append(list(s)) or saved)
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
        seen.append(list(optimizer.state_dict()))
        optimizer.load_state_dict({"y": 1})
        return seen

    mine, theirs = both(run)
    assert mine == theirs and "loaded" in mine


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "ASGD", "Adadelta"])
def test_updates_on_the_tape(name):
    def run(library):
        w = library.tensor([1.0, 2.0], dtype=library.float64, requires_grad=True)
        grad = library.tensor([0.5, -0.3], dtype=library.float64, requires_grad=True)
        p = w * 1
        p.retain_grad()
        optimizer = getattr(library.optim, name)([p], lr=0.1, eps=1e-2, differentiable=True) \
            if name not in ("SGD", "ASGD") else \
            getattr(library.optim, name)([p], lr=0.1, differentiable=True)  # fmt: skip
        p.grad = grad * 1.0
        optimizer.step()
        (p * p).sum().backward()
        return w.grad.tolist() + grad.grad.tolist()

    mine, theirs = both(run)
    assert mine == pytest.approx(theirs, rel=1e-4)  # PyTorch's steps count in float32


@pytest.mark.parametrize("name, options, steps, tensor_rate", [
    ("SGD", {"momentum": 0.9}, 3, False), ("SGD", {"momentum": 0.9, "nesterov": True}, 3, True),
    ("SGD", {"momentum": 0.9, "dampening": 0.1}, 2, False), ("Adam", {}, 3, True),
    ("Adam", {"amsgrad": True}, 1, True), ("AdamW", {}, 3, True), ("RAdam", {}, 7, True),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}, 2, True),
    ("NAdam", {}, 3, False),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}, 1, True),
    ("ASGD", {"weight_decay": 0.1}, 3, True), ("RMSprop", {"momentum": 0.9}, 3, False),
    ("Adagrad", {}, 3, False), ("Adadelta", {}, 3, False),
])
def test_gradients_go_through_several_steps(name, options, steps, tensor_rate):
    def run(library):
        start, grad, rate = (library.tensor(v, dtype=library.float64, requires_grad=True)
                             for v in ([1.0, 2.0], [0.5, -0.3], 0.1))
        p = start.clone()
        rates = {"lr": rate if tensor_rate else 0.1}
        optimizer = getattr(library.optim, name)([p], differentiable=True, **rates, **options)
        for k in range(steps):
            p.grad = grad * (k + 1) + start * 0.1
            optimizer.step()
        found = library.autograd.grad((p * p).sum(), [start, grad, rate], allow_unused=True)
        return [None if g is None else g.tolist() for g in found]

    for mine, theirs in zip(*both(run)):
        assert mine == (theirs if theirs is None else pytest.approx(theirs, rel=1e-4))


@pytest.mark.parametrize("name, options", [
    ("SGD", {}), ("Adam", {}), ("AdamW", {}), ("RMSprop", {"momentum": 0.5}), ("Adagrad", {}),
    ("NAdam", {}), ("Adadelta", {}),
])
def test_a_parameter_that_is_twice_in_a_group_is_warned_of_and_moves_twice(name, options):
    def moved(lib):
        x, y = (lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in ([1.0, -2.0], [0.5]))
        with pytest.warns(UserWarning, match="group with duplicate parameters"):
            optimizer = getattr(lib.optim, name)([x, y, x], lr=0.1, **options)
        for k in range(3):
            optimizer.zero_grad()
            ((x * x).sum() * (k + 1) + (x * y).sum()).backward()
            optimizer.step()
        return x.tolist() + y.tolist(), optimizer.state_dict()["param_groups"][0]["params"]

    (ours, our_numbers), (theirs, their_numbers) = moved(tracejit), moved(torch)
    assert ours == pytest.approx(theirs, rel=1e-12) and our_numbers == their_numbers


def test_groups_are_those_that_were_loaded():
    def run(library):
        parameters = [library.nn.Parameter(library.ones(1)) for _ in range(2)]
        made = library.optim.SGD([{"params": [p]} for p in parameters], lr=1.0)
        saved = made.state_dict()
        library.optim.lr_scheduler.StepLR(made, 1)
        made.param_groups[0]["note"] = "mine"
        made.load_state_dict(saved)
        saved["param_groups"][0].pop("foreach")
        saved["param_groups"][1]["note"] = "saved"
        again = library.optim.SGD([{"params": [p]} for p in parameters], lr=2.0)
        again.load_state_dict(saved)
        return [repr(made), repr(again), *(sorted(g) for g in (*made.param_groups,
                                                               *again.param_groups))]

    mine, theirs = both(run)
    assert mine == theirs


@pytest.mark.parametrize("name, options", [
    ("ASGD", {}), ("Adadelta", {}), ("Adafactor", {}), ("Adagrad", {}), ("Adam", {}),
    ("Adamax", {}), ("NAdam", {}), ("RAdam", {}), ("RMSprop", {}), ("Rprop", {}),
    ("SGD", {"momentum": 0.9}),
])  # fmt: skip
def test_counters_that_are_numbers_in_a_saved_state(name, options):
    def run(library):
        p = library.tensor([1.0, -2.0], requires_grad=True)
        optimizer = getattr(library.optim, name)([p], lr=0.1, **options)

        def step():
            p.grad = p.detach() * 2
            optimizer.step()

        step()
        saved = optimizer.state_dict()
        for kept in saved["state"].values():
            for key, value in kept.items():
                kept[key] = value.item() if value.dim() == 0 else value
        optimizer.load_state_dict(saved)
        kinds = {key: str(v.dtype).split(".")[1] for key, v in optimizer.state[p].items()}
        step()
        return kinds, [round(x, 4) for x in p.tolist()]

    mine, theirs = both(run)
    assert mine == theirs


def test_state_dicts_around_their_tensors():
    def run(library):
        p, q = (library.tensor([v], requires_grad=True) for v in (1.0, 2.0))
        optimizer = library.optim.Adam([("p", p), ("q", q)])
        (p * q).sum().backward()
        optimizer.step()
        optimizer.state["note"] = 1
        saved = optimizer.state_dict()
        saved["state"][0]["mine"] = 2  # the state's own dict
        seen = [list(saved["state"]), optimizer.state[p]["mine"]]
        del saved["param_groups"][0]["param_names"]
        optimizer.load_state_dict(saved)
        seen += [optimizer.state["note"], optimizer.param_groups[0]["param_names"]]
        optimizer.param_groups.extend(optimizer.param_groups)
        seen.append([g["params"] for g in optimizer.state_dict()["param_groups"]])
        for entries in ([("p", p), q], [q, ("p", p)]):
            try:
                library.optim.SGD(entries)
            except ValueError as error:
                seen.append(str(error))
        return seen

    mine, theirs = both(run)
    assert mine == theirs and len(mine) == 7


def test_loading_sets_the_state_as_unpickling_does():
    def run(library):
        class Own(library.optim.SGD):
            def __setstate__(self, state):
                super().__setstate__(state)
                self.seen = sorted(state)

        optimizer = Own([library.ones(1, requires_grad=True)])
        optimizer.load_state_dict(optimizer.state_dict())
        return optimizer.seen

    mine, theirs = both(run)
    assert mine == theirs


def test_lbfgs_where_there_is_no_gradient():
    def run(library):
        p = library.ones(2, requires_grad=True)
        return library.optim.LBFGS([p], tolerance_grad=-1.0).step(lambda: p.sum() * 0).item()

    mine, theirs = both(run)
    assert mine == theirs


@pytest.mark.parametrize("betas, options", [
    ((0.9, 0), {}), ([0.9, 0.99], {}), (("tensor", "tensor"), {}), (("tensor", 0.9), {}),
    (("tensor", "tensor"), {"foreach": True}),
])
def test_means_of_adam_are_both_floats_or_both_tensors(betas, options):
    def run(library):
        p = library.ones(2, requires_grad=True)
        kept = [library.tensor(0.9) if beta == "tensor" else beta for beta in betas]
        optimizer = library.optim.Adam([p], lr=0.1, betas=kept, **options)
        (p * p).sum().backward()
        optimizer.step()
        return [round(x, 5) for x in p.tolist()]

    mine, theirs = both(run)
    assert mine == theirs
