"""Module: registration, attributes, listing, modes, conversion, text, copies."""

import copy
import pickle

import pytest

import tracejit
from tracejit import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 3)
        self.weight = nn.Parameter(tracejit.ones(3))
        self.register_buffer("count", tracejit.zeros((), dtype=tracejit.int64))
        self.register_buffer("scratch", tracejit.zeros(2), persistent=False)
        self.register_parameter("absent", None)
        self.plain = 5

    def forward(self, x):
        return self.inner(x) * self.weight


def test_tables_are_plain_dicts_in_the_instance():
    own = Block().__dict__
    assert type(own["_parameters"]) is type(own["_buffers"]) is type(own["_modules"]) is dict
    assert own["training"] is True and own["plain"] == 5
    assert list(own["_parameters"]) == ["weight", "absent"] and list(own["_modules"]) == ["inner"]


def test_listing():
    outer = nn.Sequential(Block(), nn.Identity())
    outer.add_module("again", outer[0])
    names = ["0.weight", "0.inner.weight", "0.inner.bias"]
    assert [name for name, _ in outer.named_parameters()] == names
    assert [name for name, _ in outer.named_parameters(remove_duplicate=False)] == names + [
        n.replace("0.", "again.", 1) for n in names
    ]
    assert [name for name, _ in outer.named_parameters("p", recurse=False)] == []
    assert [name for name, _ in outer[0].named_parameters("p")][0] == "p.weight"
    assert [name for name, _ in outer.named_buffers()] == ["0.count", "0.scratch"]
    assert [name for name, _ in outer.named_modules()] == ["", "0", "0.inner", "1"]
    assert [name for name, _ in outer.named_children()] == ["0", "1"]
    assert len(list(outer.parameters())) == 3 and len(list(outer.buffers())) == 2
    seen = []
    assert outer.apply(seen.append) is outer
    assert seen == [outer[0].inner, outer[0], outer[1], outer]


def test_a_shared_parameter_is_listed_once():
    model = nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 3, bias=False))
    model[1].weight = model[0].weight
    assert [name for name, _ in model.named_parameters()] == ["0.weight"]
    assert len(list(model.named_parameters(remove_duplicate=False))) == 2
    assert list(model.state_dict()) == ["0.weight", "1.weight"]


def test_get_by_dotted_name():
    outer = nn.Sequential(Block())
    block = outer[0]
    assert outer.get_submodule("") is outer and outer.get_submodule("0.inner") is block.inner
    assert outer.get_parameter("0.inner.bias") is block.inner.bias
    assert outer.get_buffer("0.count") is block.count
    for call, text in [
        (lambda: outer.get_submodule("0.none"), "Block has no attribute `none`"),
        (lambda: outer.get_parameter("0.count"), "`count` that is an nn.Parameter"),
        (lambda: outer.get_buffer("0.weight"), "`weight` that is a buffer"),
    ]:
        with pytest.raises(AttributeError, match=text):
            call()


def test_attributes_belong_to_one_table():
    block = Block()
    block.plain = nn.Parameter(tracejit.zeros(1))
    assert "plain" in block._parameters and "plain" not in block.__dict__
    block.plain = None
    assert block._parameters["plain"] is None
    del block.plain
    assert not hasattr(block, "plain")
    block.weight = nn.Parameter(tracejit.zeros(1))
    block.inner = nn.Identity()
    block.count = tracejit.ones(())
    assert type(block._modules["inner"]) is nn.Identity and block._buffers["count"].item() == 1.0
    block.scratch = nn.Parameter(tracejit.zeros(1))
    assert "scratch" in block._parameters and "scratch" not in block._buffers
    assert {"weight", "count", "inner", "forward"} <= set(dir(block))
    with pytest.raises(AttributeError, match="'Block' object has no attribute 'nothing'"):
        _ = block.nothing


@pytest.mark.parametrize(
    ("act", "kind", "text"),
    [
        (
            lambda m: setattr(m, "weight", tracejit.ones(1)),
            TypeError,
            "cannot assign 'tracejit.FloatTensor' as parameter 'weight'",
        ),
        (
            lambda m: setattr(m, "inner", 3),
            TypeError,
            "cannot assign 'int' as child module 'inner'",
        ),
        (lambda m: setattr(m, "count", 3), TypeError, "cannot assign 'int' as buffer 'count'"),
        (lambda m: m.register_parameter("a.b", None), KeyError, "parameter name can.*t contain"),
        (lambda m: m.register_parameter("", None), KeyError, "can.*t be empty string"),
        (
            lambda m: m.register_parameter("plain", None),
            KeyError,
            "attribute 'plain' already exists",
        ),
        (
            lambda m: m.register_parameter("p", tracejit.ones(1)),
            TypeError,
            "Parameter or None required",
        ),
        (
            lambda m: m.register_buffer("b", 3),
            TypeError,
            "cannot assign 'int' object to buffer 'b'",
        ),
        (
            lambda m: m.register_buffer(3, None),
            TypeError,
            "buffer name should be a string. Got int",
        ),
        (lambda m: m.add_module("m", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.train("yes"), ValueError, "training mode is expected to be boolean"),
        (
            lambda m: nn.Module()(1),
            NotImplementedError,
            r'Module \[Module\] is missing the required "forward"',
        ),
        (lambda m: nn.Parameter(3), TypeError, "expected a Tensor, got int"),
    ],
)
def test_misuse(act, kind, text):
    with pytest.raises(kind, match=text):
        act(Block())


def test_assigning_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Identity()

    with pytest.raises(
        AttributeError, match=r"cannot assign module before Module.__init__\(\) call"
    ):
        Early()


def test_a_parameter_with_history_is_refused():
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor"):
        p = nn.Parameter(tracejit.ones(1))
        grown = (p * 2).as_subclass(nn.Parameter)
        grown._node = (p * 2)._node
        nn.Module().register_parameter("p", grown)


def test_modes_and_gradient_flags():
    outer = nn.Sequential(Block(), nn.Dropout())
    assert outer.eval() is outer
    assert not any(m.training for m in outer.modules())
    assert all(m.training for m in outer.train().modules())
    outer.requires_grad_(False)
    assert not any(p.requires_grad for p in outer.parameters())
    outer.requires_grad_()
    outer[0](tracejit.ones(1, 2)).sum().backward()
    outer.zero_grad(set_to_none=False)
    assert outer[0].weight.grad.tolist() == [0.0, 0.0, 0.0]
    outer.zero_grad()
    assert outer[0].weight.grad is None


def test_conversion_keeps_the_parameters_identity():
    block = Block()
    weight = block.weight
    block(tracejit.ones(1, 2)).sum().backward()
    assert block.double() is block
    assert block.weight is weight and weight.dtype is weight.grad.dtype is tracejit.float64
    assert block.count.dtype is tracejit.int64 and block.scratch.dtype is tracejit.float64
    assert block.to(tracejit.float16).weight.dtype is tracejit.float16
    assert block.to("cpu", tracejit.float32).weight.dtype is tracejit.float32
    assert block.to(tracejit.ones(1, dtype=tracejit.bfloat16)).weight.dtype is tracejit.bfloat16
    assert block.half().weight.dtype is tracejit.float16
    assert block.float().bfloat16().cpu().weight.dtype is tracejit.bfloat16
    assert block.type(tracejit.float64).count.dtype is tracejit.float64
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        block.to(tracejit.int64)
    with pytest.warns(UserWarning, match="Complex modules are a new feature"):
        assert block.to(tracejit.complex64).weight.dtype is tracejit.complex64


def test_text():
    class Named(nn.Module):
        def extra_repr(self):
            return "a=1,\nb=2"

    assert repr(nn.Identity()) == "Identity()"
    assert repr(Named()) == "Named(\n  a=1,\n  b=2\n)"
    outer = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU()))
    assert repr(outer) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): Sequential(\n    (0): ReLU()\n  )\n)"
    )
    assert repr(nn.Parameter(tracejit.ones(1))) == (
        "Parameter containing:\ntensor([1.], requires_grad=True)"
    )


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_whole_and_separate(copied):
    block = Block()
    block.tied = block.inner
    block.eval()
    twin = copied(block)
    assert twin.tied is twin.inner and not twin.training and twin.plain == 5
    assert type(twin.weight) is nn.Parameter and twin.weight.requires_grad
    assert twin.absent is None and twin.inner.weight.tolist() == block.inner.weight.tolist()
    with tracejit.no_grad():
        twin.weight.fill_(7)
    assert block.weight.tolist() == [1.0, 1.0, 1.0]
    assert list(twin.state_dict()) == list(block.state_dict())


def test_parameter():
    data = tracejit.ones(2)
    p = nn.Parameter(data)
    assert p.is_leaf and p.requires_grad and isinstance(p, tracejit.Tensor)
    data[0] = 5
    assert p.tolist() == [5.0, 1.0], "memory is shared"
    assert type(p * 1) is tracejit.Tensor and type(p.detach()) is tracejit.Tensor
    frozen = nn.Parameter(tracejit.ones(1), requires_grad=False)
    assert not frozen.requires_grad and not copy.deepcopy(frozen).requires_grad
    assert nn.Parameter().numel() == 0
    twins = copy.deepcopy([p, p])
    assert twins[0] is twins[1] and type(twins[0]) is nn.Parameter


def test_report_of_a_plain_module_says_what_to_do():
    for ask in (lambda m: m.report(), lambda m: m.graph(), lambda m: m.graphs):
        with pytest.raises(
            AttributeError, match=r"Linear.forward is not compiled: .*tracejit.script\(module\)"
        ):
            ask(nn.Linear(1, 1))


@pytest.mark.parametrize("name", ["report", "graph", "graphs"])
def test_modules_leave_names_of_reports_to_their_users(name):
    module, part, number = nn.Module(), nn.Identity(), tracejit.ones(1)
    assert not hasattr(module, name) and name not in dir(module)
    setattr(module, name, part)
    assert getattr(module, name) is part and nn.ModuleDict({name: part})[name] is part
    plain = nn.Module()
    setattr(plain, name, [1])
    assert getattr(plain, name) == [1]
    plain = nn.Module()
    plain.register_buffer(name, number)
    assert getattr(plain, name) is number


def test_report_goes_to_the_compiled_forward():
    class Compiled:
        graphs = "stages"

        def report(self):
            return "report"

        def graph(self, *example):
            return example

    layer = nn.Identity()
    layer.forward = Compiled()
    assert (layer.report(), layer.graph(1, 2), layer.graphs) == ("report", (1, 2), "stages")


def test_modules_are_put_at_dotted_names():
    module = nn.Sequential(nn.Sequential(nn.Linear(1, 1)), nn.ReLU())
    module.set_submodule("0.0", nn.Tanh())
    module.set_submodule("0.new", nn.ReLU())
    assert [type(m).__name__ for m in module[0].children()] == ["Tanh", "ReLU"]
    for target, value, strict, error, text in (
        ("", nn.ReLU(), False, ValueError, "Cannot set the submodule without a target name!"),
        ("x.y", nn.ReLU(), False, AttributeError, "Sequential has no attribute `x`"),
        ("z", nn.ReLU(), True, AttributeError, "Sequential has no attribute `z`"),
        ("0", 3, False, ValueError, "`module` is not an nn.Module, found <class 'int'>"),
        ("training", nn.ReLU(), False, AttributeError, "`training` is not an nn.Module"),
    ):
        with pytest.raises(error, match=text):
            module.set_submodule(target, value, strict)


def test_modules_with_new_tensors():
    module = nn.Sequential(nn.Linear(2, 1))
    before, children = module[0].weight, list(module.children())
    assert module.to_empty(device="cpu", recurse=False) is module
    assert module[0].weight is before and list(module.children()) == children
    before = before.data_ptr()
    assert module.to_empty(device="cpu")[0].weight.data_ptr() != before
    assert type(module[0].weight) is nn.Parameter


def test_forward_is_compiled_in_place():
    module = nn.Linear(2, 1)
    expected = module(tracejit.ones(3, 2)).tolist()
    module.compile(mode="graph")
    for _ in range(2):
        assert module(tracejit.ones(3, 2)).tolist() == expected
    assert (module.report().compiles, module.report().cache_hits) == (1, 1)
    assert list(module.state_dict()) == ["weight", "bias"]


def test_what_is_assigned_again_keeps_its_place():
    class Three(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(1, 1), nn.ReLU()
            self.a, self.b = nn.Parameter(tracejit.ones(1)), nn.Parameter(tracejit.ones(1))
            self.seen, self.count = nn.Buffer(tracejit.ones(1)), nn.Buffer(tracejit.ones(1))

    module = Three()
    module.first, module.a = nn.Linear(1, 2, bias=False), nn.Parameter(tracejit.zeros(1))
    module.seen = nn.Buffer(tracejit.zeros(1))
    assert [name for name, _ in module.named_children()] == ["first", "second"]
    assert list(module.state_dict()) == ["a", "b", "seen", "count", "first.weight"]
    module.second = nn.Parameter(tracejit.zeros(1))
    assert list(module.state_dict()) == ["a", "b", "second", "seen", "count", "first.weight"]


def test_buffers_by_assignment():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = nn.Buffer(tracejit.zeros(2))
            self.cache = nn.Buffer(tracejit.ones(1), persistent=False)

        def forward(self, x):
            self.seen += x
            return self.seen * self.cache

    module = Counting()
    assert list(module.state_dict()) == ["seen"]
    assert [name for name, _ in module.named_buffers()] == ["seen", "cache"]
    assert isinstance(module.seen, nn.Buffer) and type(module.seen) is tracejit.Tensor
    assert not isinstance(tracejit.ones(1), nn.Buffer)
    compiled = tracejit.script(module, mode="graph")
    assert [compiled(tracejit.ones(2)).tolist() for _ in range(3)] == [[1, 1], [2, 2], [3, 3]]
    assert compiled.report().compiles == 1
    module.seen = tracejit.zeros(3)
    assert list(module.state_dict()) == ["seen"] and module.seen.shape == (3,)


def test_a_switch_of_conversion_that_is_turned_on_later_is_seen_by_a_captured_call():
    def kept(run):
        layer = nn.Linear(2, 2)

        @run
        def step(x):
            layer.float()
            return layer(x).sum()

        same = []
        for on in (False, False, True, True, False):
            tracejit.__future__.set_overwrite_module_params_on_conversion(on)
            before = layer.weight
            step(tracejit.ones(2))
            same.append(layer.weight is before)
        return same

    assert kept(lambda f: f) == kept(tracejit.script) == [True, True, False, False, True]
