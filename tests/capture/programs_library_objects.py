"""Programs on what tracejit's own code reads of the user's objects: which modules and weights are
one, methods of instances, hooks of state dicts, attributes of library classes and objects."""

from __future__ import annotations

import types
from collections import OrderedDict

import tracejit as tj
import tracejit.nn.functional as F
from tests.capture.program_list import programs_in
from tracejit import nn, optim
from tracejit.func import functional_call


def _two():
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    for p in model.parameters():
        p.data.fill_(1.0)
    return model


def _changed(f, change):
    out = [f() for _ in range(5)]
    change()
    return [*out, f(), f()]


def _tying(jit, reads):
    model = _two()

    def tie():
        model[1].weight = model[0].weight

    return _changed(jit(lambda: reads(model)), tie)


def weights_that_become_one_in_parameters(jit):
    return _tying(jit, lambda m: sum(p.pow(2).sum() for p in m.parameters()).item())


def weights_that_become_one_in_named_parameters(jit):
    return _tying(jit, lambda m: [name for name, _ in m.named_parameters()])


def weights_that_become_one_in_a_vector(jit):
    return _tying(jit, lambda m: nn.utils.parameters_to_vector(m.parameters()))


def weights_that_become_one_in_a_list_of_modules(jit):
    return _tying(jit, lambda m: len(list(nn.ModuleList([m[0], m[1]]).parameters())))


def weights_that_become_one_in_an_optimizer_made_inside(jit):
    return _tying(jit, lambda m: len(optim.SGD(m.parameters(), 0.1).param_groups[0]["params"]))


def weights_that_become_two(jit):
    model = _two()
    model[1].weight = model[0].weight

    def untie():
        model[1].weight = nn.Parameter(tj.full((1, 1), 2.0))

    return _changed(jit(lambda: sum(p.sum() for p in model.parameters()).item()), untie)


def buffers_that_become_one(jit):
    model = nn.Module()
    model.register_buffer("a", tj.ones(1))
    model.register_buffer("b", tj.ones(1))

    def tie():
        model.b = model.a

    return _changed(jit(lambda: sum(b.sum() for b in model.buffers()).item()), tie)


def _replacing(jit, reads):
    model = _two()

    def tie():
        model[1] = model[0]

    return _changed(jit(lambda: reads(model)), tie)


def submodules_that_become_one(jit):
    return _replacing(jit, lambda m: [len(list(m.modules())), [n for n, _ in m.named_modules()]])


def children_that_become_one(jit):
    return _replacing(jit, lambda m: [len(list(m.children())), [n for n, _ in m.named_children()]])


def modules_that_become_one_in_apply(jit):
    def count(model):
        seen = []
        model.apply(lambda module: seen.append(1))
        return len(seen)

    return _replacing(jit, count)


def modules_of_variables_that_become_one(jit):
    one, other = nn.Linear(1, 1), nn.Linear(1, 1)
    f = jit(lambda: len(list(nn.ModuleList([one, other]).parameters())))
    out = [f(), f()]
    other = one
    return [*out, f(), f()]


def parameters_of_variables_that_become_one(jit):
    one, other = nn.Parameter(tj.ones(1)), nn.Parameter(tj.ones(1))
    f = jit(lambda: len(list(nn.ParameterList([one, other]).parameters())))
    out = [f(), f()]
    other = one
    return [*out, f(), f()]


def tied_weights_of_a_functional_call(jit):
    model = _two()
    given = {"0.weight": tj.full((1, 1), 3.0)}
    f = jit(lambda: functional_call(model, given, tj.ones(1, 1)).item())

    def tie():
        model[1].weight = model[0].weight

    return _changed(f, tie)


def tensors_given_to_a_functional_call_that_become_two(jit):
    model = _two()
    model[1].weight = model[0].weight
    one = tj.full((1, 1), 3.0)
    given = {"0.weight": one, "1.weight": one}

    @jit
    def f():
        try:
            return functional_call(model, given, tj.ones(1, 1)).item()
        except ValueError as error:
            return str(error)

    def part():
        given["1.weight"] = tj.full((1, 1), 3.0)

    return _changed(f, part)


def tensors_given_to_a_functional_call_that_become_one(jit):
    model = _two()
    model[1].weight = model[0].weight
    given = {"0.weight": tj.full((1, 1), 3.0), "1.weight": tj.full((1, 1), 3.0)}

    @jit
    def f():
        try:
            return functional_call(model, given, tj.ones(1, 1)).item()
        except ValueError as error:
            return str(error)

    def join():
        given["1.weight"] = given["0.weight"]

    return _changed(f, join)


def hooks_of_state_dicts(jit):
    model = nn.Linear(1, 1)
    f = jit(lambda: sorted(model.state_dict()))
    out = [f(), f()]
    handle = model._register_state_dict_hook(
        lambda module, found, *rest: found.pop("bias") and None
    )
    out += [f(), f()]
    handle.remove()
    return [*out, f(), f()]


def hooks_of_state_dicts_of_submodules(jit):
    model, calls = _two(), []
    f = jit(lambda: sorted(model.state_dict()))
    out = [f(), f(), len(calls)]
    model[1].register_state_dict_pre_hook(lambda *given: calls.append(given[1]))
    return [*out, f(), f(), calls]


def hooks_before_loading(jit):
    model, calls = nn.Linear(1, 1), []
    state = {"weight": tj.ones(1, 1), "bias": tj.ones(1)}
    f = jit(lambda: len(model.load_state_dict(state).missing_keys))
    out = [f(), f(), len(calls)]
    model.register_load_state_dict_pre_hook(lambda *given: calls.append(given[2]))
    out += [f(), f(), list(calls)]
    model.register_load_state_dict_post_hook(lambda *given: calls.append("loaded"))
    return [*out, f(), f(), calls]


def buffers_that_persist_no_more(jit):
    model = nn.Linear(1, 1)
    model.register_buffer("b", tj.ones(1))
    f = jit(lambda: list(model.state_dict()))
    return _changed(f, lambda: model.register_buffer("b", tj.ones(1), persistent=False))


def versions_of_modules(jit):
    class Own(nn.Linear):
        _version = 2

    model = nn.Sequential(Own(1, 1))
    f = jit(lambda: model.state_dict()._metadata["0"]["version"])
    return _changed(f, lambda: setattr(Own, "_version", 3))


def versions_that_are_loaded(jit):
    class Own(nn.Linear):
        def _load_from_state_dict(self, state, prefix, metadata, strict, missing, *rest):
            missing.append(f"of version {metadata.get('version')}")

    model = Own(1, 1)
    state = model.state_dict()
    f = jit(lambda: model.load_state_dict(state, strict=False).missing_keys)
    return _changed(f, lambda: state._metadata[""].update(version=7))


def _overriding(jit, name, method, reads):
    model = _two()
    f = jit(lambda: reads(model))
    out = [f() for _ in range(4)]
    setattr(model, name, types.MethodType(method, model))
    out += [f(), f()]
    delattr(model, name)
    return [*out, f(), f()]


def named_parameters_of_an_instance(jit):
    return _overriding(jit, "named_parameters", lambda self, *args, **kwargs: iter([]),
                       lambda m: len(list(m.parameters())))


def children_of_an_instance(jit):
    return _overriding(jit, "children", lambda self: iter([]),
                       lambda m: [[m.train(k)[0].training, m[1].training] for k in (False, True)])


def named_children_of_an_instance(jit):
    def count(model):
        seen = []
        model.apply(lambda module: seen.append(1))
        return len(seen)

    return _overriding(jit, "named_children", lambda self: iter([]), count)


def named_modules_of_an_instance(jit):
    return _overriding(jit, "named_modules", lambda self, *args, **kwargs: iter([("", self)]),
                       lambda m: [len(list(m.modules())), len(list(m.parameters()))])


def named_members_of_an_instance(jit):
    return _overriding(jit, "_named_members", lambda self, *rest, **more: iter([]),
                       lambda m: len(list(m.buffers())) + len(list(m.named_parameters())))


def named_modules_of_a_submodule(jit):
    model = _two()
    f = jit(lambda: len(list(model.modules())))
    return _changed(f, lambda: setattr(model[0], "named_modules", lambda *given: iter([])))


def methods_of_a_module_that_counts(jit):
    model = _two()
    model.total = tj.zeros(1)

    @jit
    def f():
        model.total = model.total + 1
        return len(list(model.modules())), model.total.item()

    out = [f() for _ in range(40)]
    model.named_modules = lambda *given: iter([])
    return [*out, f(), f()]


def apply_of_an_instance(jit):
    return _overriding(jit, "_apply", lambda self, *rest: None, lambda m: m.float() is m)


def get_submodule_of_an_instance(jit):
    return _overriding(jit, "get_submodule", lambda self, target: self[1],
                       lambda m: m.get_parameter("0.weight") is m[0].weight)


def texts_of_an_instance(jit):
    return _overriding(jit, "extra_repr", lambda self: "of its own", repr)


def name_of_an_instance(jit):
    return _overriding(jit, "_get_name", lambda self: "Own", repr)


def saving_of_an_instance(jit):
    return _overriding(jit, "_save_to_state_dict", lambda self, found, *rest: found.update(a=1),
                       lambda m: list(m.state_dict()))


def loading_of_an_instance(jit):
    return _overriding(jit, "_load_from_state_dict", lambda self, *rest: rest[-1].append("refused"),
                       _loaded)


def _loaded(model):
    try:
        return len(model.load_state_dict(model.state_dict()).missing_keys)
    except RuntimeError as error:
        return str(error)


def attributes_of_schedules_that_come_and_go(jit):
    optimizer = optim.SGD([nn.Parameter(tj.ones(1))], 0.1)
    schedule = optim.lr_scheduler.StepLR(optimizer, 5)
    f = jit(lambda: sorted(schedule.state_dict()))
    out = [f(), f()]
    schedule.foo = 1
    out += [f(), f()]
    schedule.foo = 2
    out += [f(), f()]
    del schedule.foo
    return [*out, f(), f()]


def _setting(jit, owner, name, reads, values=(2.0, 3.0)):
    f = jit(reads)
    x, out = tj.ones(1), []
    try:
        for value in values:
            setattr(owner, name, value)
            out += [f(x), f(x), f(x)]
    finally:
        delattr(owner, name)
    return out


def data_of_a_layers_class(jit):
    model = nn.Linear(1, 1)
    return _setting(jit, nn.Linear, "gain", lambda x: (x * model.gain).item())


def data_of_a_layers_class_by_its_name(jit):
    return _setting(jit, nn.Linear, "gain", lambda x: (x * nn.Linear.gain).item())


def data_of_a_layers_class_by_type(jit):
    model = nn.Linear(1, 1)
    return _setting(jit, nn.Linear, "gain", lambda x: (x * type(model).gain).item())


def data_of_a_layers_class_by_a_subclass(jit):
    class Sub(nn.Linear):
        pass

    return _setting(jit, Sub, "gain", lambda x: (x * Sub.gain).item())


def data_of_a_layers_class_that_a_subclass_inherits(jit):
    class Sub(nn.Linear):
        pass

    return _setting(jit, nn.Linear, "gain", lambda x: (x * Sub.gain).item())


def data_that_a_layers_class_may_lack(jit):
    model = nn.Linear(1, 1)
    f = jit(lambda x: x * getattr(model, "gain", 1.0) * getattr(nn.Linear, "gain", 5.0))
    x = tj.ones(1)
    out = [f(x), f(x)]
    nn.Linear.gain = 2.0
    out += [f(x), f(x)]
    del nn.Linear.gain
    return [*out, f(x), f(x)]


def constants_of_a_layers_class(jit):
    return _setting(jit, nn.Linear, "__constants__",
                    lambda x: (x * len(nn.Linear.__constants__)).item(), ([1], [1, 2], [3]))


def data_of_the_class_of_tensors(jit):
    return _setting(jit, tj.Tensor, "gain", lambda x: (x * x.gain + tj.Tensor.gain).item())


def data_of_the_class_of_parameters(jit):
    weight = nn.Parameter(tj.ones(1))
    return _setting(jit, nn.Parameter, "gain", lambda x: (x * weight.gain).item())


def data_of_an_optimizers_class(jit):
    optimizer = optim.SGD([nn.Parameter(tj.ones(1))], 0.1)
    return _setting(jit, optim.SGD, "gain",
                    lambda x: (x * optimizer.gain + optim.SGD.gain).item())


def data_of_the_class_of_functions(jit):
    return _setting(jit, tj.autograd.Function, "gain",
                    lambda x: (x * tj.autograd.Function.gain).item())


def data_of_a_function_of_the_library(jit):
    return _setting(jit, F.relu, "k", lambda x: (F.relu(x) * F.relu.k).item())


def data_that_a_function_of_the_library_may_lack(jit):
    f = jit(lambda x: (F.relu(x) * getattr(F.relu, "k", 1.0)).item())
    x = tj.ones(1)
    out = [f(x), f(x)]
    F.relu.k = 2.0
    out += [f(x), f(x)]
    del F.relu.k
    return [*out, f(x), f(x)]


def attributes_of_ordered_dicts(jit):
    table = OrderedDict(a=1.0)
    table.k = 2.0
    f = jit(lambda x: (x * table.k * table["a"]).item())
    x, out = tj.ones(1), []
    for value in (2.0, 3.0, 4.0):
        table.k = value
        out += [f(x), f(x), f(x)]
    return out


def attributes_that_ordered_dicts_may_lack(jit):
    table = OrderedDict(a=1.0)
    f = jit(lambda x: (x * getattr(table, "k", 1.0)).item())
    x = tj.ones(1)
    out = [f(x), f(x), f(x)]
    table.k = 2.0
    out += [f(x), f(x)]
    del table.k
    return [*out, f(x), f(x)]


def attributes_stored_in_ordered_dicts(jit):
    table = OrderedDict(a=1.0)

    @jit
    def f(x):
        table.k = x * 2
        table.count = len(table)
        return x + table.k

    out = [f(tj.ones(1)), table.k, f(tj.ones(1) * 2), table.k, table.count]
    table["b"] = 1
    return [*out, f(tj.ones(1)), table.k, table.count]


def metadata_of_a_state_dict(jit):
    state = nn.Linear(1, 1).state_dict()
    f = jit(lambda: state._metadata[""]["version"])
    return _changed(f, lambda: state._metadata[""].update(version=9))


def _given(jit, thing):
    thing.k = 2.0
    f = jit(lambda x: (x * thing.k).item())
    x, out = tj.ones(1), []
    for value in (2.0, 3.0, 4.0):
        thing.k = value
        out += [f(x), f(x), f(x)]
    return out


def attributes_of_hook_handles(jit):
    return _given(jit, nn.Linear(1, 1).register_forward_hook(lambda *given: None))


def attributes_of_generators(jit):
    return _given(jit, tj.Generator())


def attributes_of_grad_modes(jit):
    return _given(jit, tj.no_grad())


def attributes_of_float_infos(jit):
    return _given(jit, tj.finfo(tj.float32))


def attributes_of_packed_sequences(jit):
    return _given(jit, nn.utils.rnn.pack_sequence([tj.ones(2), tj.ones(1)]))


def attributes_of_tuples_of_a_subclass(jit):
    class Pair(tuple):
        pass

    return _given(jit, Pair((1, 2)))


def attributes_that_generators_may_lack(jit):
    generator = tj.Generator()
    f = jit(lambda x: x * getattr(generator, "k", 1.0))
    x = tj.ones(1)
    out = [f(x), f(x), f(x)]
    generator.k = 2.0
    out += [f(x), f(x)]
    del generator.k
    return [*out, f(x), f(x)]


def attributes_stored_in_generators(jit):
    generator = tj.Generator()

    @jit
    def f(x):
        generator.k = x * 2
        return x + generator.k + tj.rand(1, generator=generator.manual_seed(1))

    return [f(tj.ones(1)), generator.k, f(tj.ones(1) * 2), generator.k, f(tj.ones(1)), generator.k]


def _handled(jit, owner, reads):
    @jit
    def f(x):
        try:
            return (x * reads(x).k).item()
        except AttributeError:
            return -1.0

    x = tj.ones(1)
    out = [f(x) for _ in range(4)]
    owner.k = 3.0
    out += [f(x), f(x)]
    del owner.k
    return [*out, f(x), f(x)]


def attributes_of_tensors_classes_whose_lack_is_handled(jit):
    return _handled(jit, tj.Tensor, lambda x: x)


def attributes_of_layers_classes_whose_lack_is_handled(jit):
    return _handled(jit, nn.Linear, lambda x: nn.Linear)


def attributes_of_functions_whose_lack_is_handled(jit):
    return _handled(jit, F.relu, lambda x: F.relu)


def attributes_of_generators_whose_lack_is_handled(jit):
    generator = tj.Generator()
    return _handled(jit, generator, lambda x: generator)


def number_of_attributes_of_a_generator(jit):
    generator = tj.Generator()
    f = jit(lambda x: (x * len(vars(generator))).item())
    return _changed(lambda: f(tj.ones(1)), lambda: setattr(generator, "k", 1))


PROGRAMS = programs_in(globals())
