"""What modules override and hook of saving and loading, in PyTorch's order and words."""

from collections import OrderedDict

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def text(error):
    return str(error).replace("torch.", "").replace("tracejit.", "")


def both(program):
    assert program(tracejit) == program(torch)


def test_hooks_run_in_order():
    def program(lib):
        log = []
        net = lib.nn.Sequential(lib.nn.Linear(1, 1), lib.nn.Linear(1, 1, bias=False))
        inner = net[0]
        net.register_state_dict_pre_hook(lambda m, p, k: log.append(("before", m is net, p, k)))
        inner.register_state_dict_post_hook(
            lambda m, s, p, meta: log.append(("after", m is inner, sorted(s), p, dict(meta)))
        )
        net._register_state_dict_hook(lambda m, s, p, meta: log.append(("old", p, dict(meta))))
        inner.register_load_state_dict_pre_hook(
            lambda m, s, p, meta, strict, *lists: log.append((m is inner, p, strict, lists))
        )
        inner._register_load_state_dict_pre_hook(lambda s, p, *rest: log.append((p, len(rest))))
        net.register_load_state_dict_post_hook(lambda m, keys: log.append(repr(keys)))
        state = net.state_dict()
        net.load_state_dict(state)
        return log, list(state), {k: dict(v) for k, v in state._metadata.items()}

    both(program)


def test_hooks_that_change_things():
    def program(lib):
        linear = lib.nn.Linear(1, 1)
        handle = linear._register_state_dict_hook(lambda m, s, p, meta: OrderedDict(z=1))
        seen = [linear.state_dict()]
        handle.remove()
        seen.append(sorted(linear.state_dict()))

        def rename(module, state, prefix, *rest):
            state[prefix + "weight"] = state.pop(prefix + "old")

        linear.register_load_state_dict_pre_hook(rename)
        given = {"old": lib.ones(1, 1), "bias": lib.zeros(1)}
        seen += [repr(linear.load_state_dict(given)), linear.weight.item(), sorted(given)]
        linear.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
        seen.append(repr(linear.load_state_dict({"old": lib.ones(1, 1)})))
        linear.register_state_dict_post_hook(lambda m, s, p, meta: 1)
        with pytest.raises(RuntimeError) as caught:
            linear.state_dict()
        return [*seen, text(caught.value)]

    both(program)


def test_extra_state_and_overrides():
    def program(lib):
        log = []

        class Counted(lib.nn.Module):
            _version = 3

            def __init__(self):
                super().__init__()
                self.weight, self.steps = lib.nn.Parameter(lib.ones(1)), 4

            def get_extra_state(self):
                return {"steps": self.steps}

            def set_extra_state(self, state):
                self.steps = state["steps"]

        class Renamed(lib.nn.Linear):
            def _save_to_state_dict(self, destination, prefix, keep_vars):
                super()._save_to_state_dict(destination, prefix, keep_vars)
                destination[prefix + "kernel"] = destination.pop(prefix + "weight")

            def _load_from_state_dict(self, state, prefix, metadata, *rest):
                log.append(dict(metadata))
                state[prefix + "weight"] = state.pop(prefix + "kernel")
                super()._load_from_state_dict(state, prefix, metadata, *rest)

        net = lib.nn.ModuleDict({"a": Counted(), "b": Renamed(1, 1)})
        state = net.state_dict()
        state["a._extra_state"] = {"steps": 9}
        log += [list(state), repr(net.load_state_dict(state)), net["a"].steps]
        del state["a._extra_state"]
        with pytest.raises(RuntimeError) as caught:
            net.load_state_dict(state)
        return log, text(caught.value)

    both(program)


def test_places_scalars_and_unexpected_keys():
    def program(lib):
        class Scalar(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = lib.nn.Parameter(lib.tensor(1.0))

        module, found = Scalar(), OrderedDict()
        module.load_state_dict({"w": lib.ones(1) * 5})
        module.state_dict(found, "there.", True)
        kept = found["there.w"] is module.w
        with pytest.raises(RuntimeError) as caught:
            module.load_state_dict({"w.x": 1, "x.w": 2, "w": lib.ones(2), "_extra_state": 3})
        return module.w.item(), list(found), kept, text(caught.value)

    both(program)


@pytest.mark.parametrize("strict", [True, False])
def test_a_module_that_needs_no_key_of_its_own(strict):
    """It passes strict=False on: its keys are neither missing nor unexpected. Hooks see True."""
    def program(lib):
        class Bounded(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("bound", lib.zeros(1))

            def _load_from_state_dict(self, state, prefix, metadata, strict, *lists):
                seen.append(strict)
                return super()._load_from_state_dict(state, prefix, metadata, False, *lists)

        class Counting(Bounded):
            def get_extra_state(self):
                return 1

            def set_extra_state(self, state):
                pass

        seen = []
        net = lib.nn.Sequential(lib.nn.Linear(1, 1), Bounded(), Counting())
        net[0]._register_load_state_dict_pre_hook(lambda s, p, m, strict, *_: seen.append(strict))
        state = {"0.weight": lib.ones(1, 1), "1.old": lib.ones(1)}
        told = []
        for given in (state, state | {"0.bias": lib.ones(1)}, state | {"3.old": lib.ones(1)}):
            try:
                told.append(repr(net.load_state_dict(given, strict=strict)))
            except RuntimeError as error:
                told.append(text(error))
        return told, seen, net[0].weight.item()

    both(program)
