"""Names that public programs ask for while they are imported, and need nowhere without a GPU."""

import importlib

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", ["Stream", "Event", "ExternalStream", "CUDAGraph", "graph"])
def test_streams_are_named_and_refused(name):
    with pytest.raises(RuntimeError, match=f"{name} is not supported"):
        getattr(tracejit.cuda, name)()


def test_no_stream_is_a_context_that_changes_nothing():
    with tracejit.cuda.stream(None), tracejit.cuda.StreamContext(None):
        assert not tracejit.cuda.is_available() or tracejit.ones(1).item() == 1


def test_masks_index_by_batched_places():
    mode = importlib.import_module("tracejit._dynamo._trace_wrapped_higher_order_op")
    shown = tracejit.tensor([[True, False], [True, True]])
    with mode.TransformGetItemToIndex():
        rows = tracejit.vmap(tracejit.vmap(lambda b, k: shown[b, k], (None, 0)), (0, None))
        assert rows(tracejit.arange(2), tracejit.arange(2)).tolist() == shown.tolist()


def test_classes_of_mappings_are_nodes_of_trees():
    from tracejit.utils import _pytree as trees

    class Output(dict):
        pass

    trees.register_pytree_node(Output, trees._dict_flatten,
                               lambda x, keys: Output(trees._dict_unflatten(x, keys)),
                               flatten_with_keys_fn=trees._dict_flatten_with_keys)
    leaves, spec = trees.tree_flatten(Output(a=1, b=[2]))
    assert leaves == [1, 2] and type(trees.tree_unflatten(leaves, spec)) is Output
    assert [trees.keystr(p) for p, _ in trees.tree_leaves_with_path(Output(a=1))] == ["['a']"]


@pytest.mark.parametrize("name", ["tracejit", "torch"])
def test_futures(name):
    futures = importlib.import_module(f"{name}.futures")
    first, second = futures.Future(), futures.Future()
    failing = first.then(lambda f: f.wait() / 0)
    twice, seen = second.then(lambda f: f.value() * 2), []
    second.add_done_callback(lambda f: seen.append(f.wait()))
    assert not first.done() and not twice.done()
    first.set_result(1)
    second.set_result(4)
    assert twice.wait() == 8 and seen == [4] and futures.wait_all([first, twice]) == [1, 8]
    assert futures.collect_all([first]).wait()[0] is not None and futures.wait_all([]) == []
    with pytest.raises((ZeroDivisionError, RuntimeError), match="division by zero"):
        failing.wait()
    with pytest.raises(RuntimeError, match="completed once"):
        first.set_result(2)


def test_functions_are_called_in_no_other_process():
    assert importlib.import_module("tracejit.distributed.rpc").is_available() is False


def test_inner_names_are_keys_and_call():
    aten = tracejit.ops.aten
    assert aten.add.Tensor is aten.add.Tensor and aten.add.Tensor != aten.add.Scalar
    assert aten.mm.default(tracejit.ones(1, 2), tracejit.ones(2, 1)).tolist() == [[2.0]]
    assert aten.relu(tracejit.tensor([-1.0])).tolist() == [0.0]
    with pytest.raises(NotImplementedError, match="aten._to_copy.default"):
        aten._to_copy.default(tracejit.ones(1))


def test_inside_of_vmap_is_known():
    asked = tracejit._C._are_functorch_transforms_active
    seen = []

    def f(x):
        seen.append(asked())
        return x * 2

    tracejit.vmap(f)(tracejit.ones(2))
    assert seen == [True] and not asked()
    assert tracejit._C._disabled_torch_function_impl(tracejit.neg, (), (tracejit.ones(1),)) == -1
    assert tracejit._C._get_tracing_state() is None


def test_private_places_of_printing_loading_and_folders(monkeypatch):
    x = tracejit.tensor([[1.0, 2.0], [0.5, -3.0]])
    printed = importlib.import_module("tracejit._tensor_str")
    assert printed._tensor_str(x, 0) == torch._tensor_str._tensor_str(torch.tensor(x.tolist()), 0)
    assert printed.PRINT_OPTS.threshold == torch._tensor_str.PRINT_OPTS.threshold
    loading = importlib.import_module("tracejit.utils.data.dataloader")
    batches = iter(loading.DataLoader([1, 2]))
    assert isinstance(batches, loading._BaseDataLoaderIter)
    assert isinstance(batches, loading._SingleProcessDataLoaderIter)
    monkeypatch.setenv("TORCH_HOME", "/somewhere")
    assert tracejit.hub._get_torch_home() == "/somewhere" == torch.hub._get_torch_home()
    assert tracejit.hub.get_dir() == torch.hub.get_dir()


def test_batches_are_split_and_joined():
    parallel = importlib.import_module("tracejit.nn.parallel.scatter_gather")
    whole = {"x": tracejit.arange(6.0).reshape(3, 2), "n": 4}
    parts = parallel.scatter(whole, ["cpu", "cpu"])
    assert [p["x"].shape[0] for p in parts] == [2, 1] and [p["n"] for p in parts] == [4, 4]
    assert parallel.gather(parts, "cpu")["x"].tolist() == whole["x"].tolist()


def test_an_optimizer_of_parameters_elsewhere_is_refused():
    many = importlib.import_module("tracejit.distributed.optim")
    with pytest.raises(NotImplementedError, match="DistributedOptimizer"):
        many.DistributedOptimizer(tracejit.optim.SGD, [tracejit.ones(1)])
    spread = importlib.import_module("tracejit.distributed.tensor").DTensor
    assert not isinstance(tracejit.ones(1), spread)
    with pytest.raises(NotImplementedError, match="DTensor"):
        spread(tracejit.ones(1))


# What transformers, diffusers, peft and accelerate import wherever processes can work together.
SPREAD = {
    "_composable.fsdp": "CPUOffloadPolicy MixedPrecisionPolicy fully_shard",
    "_functional_collectives": "AsyncCollectiveTensor all_to_all_single_autograd wait_tensor",
    "checkpoint.hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "tensor": "DTensor Partial Placement Replicate Shard distribute_module distribute_tensor",
    "tensor._utils": "compute_local_shape_and_global_offset",
    "tensor.placement_types": "Partial Placement Replicate Shard _StridedShard",
}


@pytest.mark.parametrize("lib", ["tracejit", "torch"])
def test_plans_of_packages_for_spread_tensors(lib):
    for place, names in SPREAD.items():
        module = importlib.import_module(f"{lib}.distributed.{place}")
        assert [name for name in names.split() if not hasattr(module, name)] == []
    types = importlib.import_module(f"{lib}.distributed.tensor.placement_types")
    plan = [types.Replicate(), types.Shard(-1), types.Shard(dim=0), types.Partial(),
            types._StridedShard(0, split_factor=2)]
    assert list(map(repr, plan[:4])) == ["Replicate()", "Shard(dim=-1)", "Shard(dim=0)",
                                         "Partial(sum)"]
    assert [p.is_shard() for p in plan[:4]] == [False, True, True, False]
    assert plan[2].is_shard(0) and not plan[2].is_shard(1)
    assert plan[0].is_replicate() and plan[3].is_partial() and not plan[3].is_partial("max")
    assert plan[1] == types.Shard(-1) != plan[2] and len({plan[1], types.Shard(-1)}) == 1


@pytest.mark.parametrize(("place", "name"), [
    ("tensor", "distribute_tensor"), ("tensor", "distribute_module"),
    ("tensor._utils", "compute_local_shape_and_global_offset"),
    ("checkpoint.hf_storage", "HuggingFaceStorageReader"),
])
def test_spreading_is_refused_by_name(place, name):
    module = importlib.import_module(f"tracejit.distributed.{place}")
    with pytest.raises(NotImplementedError, match=name):
        getattr(module, name)("argument")


@pytest.mark.parametrize("lib", [tracejit, torch], ids=["tracejit", "torch"])
def test_distributions_of_the_users_own(lib):
    lib.distributions.Distribution.set_default_validate_args(True)  # as PyTorch's compiler does not
    class Shifted(lib.distributions.Distribution):
        arg_constraints = {"loc": lib.distributions.constraints.positive}

        def __init__(self, loc, validate_args=False):
            self._validate_args = validate_args
            self.loc = loc
            super().__init__(loc.shape, validate_args=validate_args)

    assert Shifted(lib.tensor([-1.0]))._validate_args is False
    kept = Shifted(lib.tensor([1.0]), validate_args=True)
    assert kept._validate_args is True
    kept._validate_args = False
    assert kept._validate_args is False and lib.distributions.Normal(0.0, 1.0)._validate_args
    with pytest.raises(ValueError):
        Shifted(lib.tensor([-1.0]), validate_args=True)


def test_constraints_are_listed_and_segments_have_their_inner_name():
    ours, theirs = (m.distributions.constraints for m in (tracejit, torch))
    assert sorted(ours.__all__) == sorted(theirs.__all__)
    assert all(hasattr(ours, name) for name in ours.__all__)
    assert tracejit._segment_reduce is tracejit.segment_reduce


@pytest.mark.parametrize("lib", [tracejit, torch], ids=["tracejit", "torch"])
def test_parameters_of_the_users_own_with_arguments_of_their_own(lib):
    class Marked(lib.Tensor):
        def __new__(cls, data, mark=None, requires_grad=False):
            made = lib.Tensor._make_subclass(cls, data, requires_grad)
            made.mark = mark
            return made

    class MarkedParameter(Marked, lib.nn.Parameter):
        def __new__(cls, data, mark=None, requires_grad=True):
            return Marked.__new__(cls, data, mark=mark, requires_grad=requires_grad)

    made = MarkedParameter(lib.ones(2), mark="here")
    assert made.mark == "here" and made.requires_grad and isinstance(made, lib.nn.Parameter)
    with pytest.raises(TypeError):
        lib.nn.Parameter(lib.ones(1), mark=1)


@pytest.mark.parametrize("lib", [tracejit, torch], ids=["tracejit", "torch"])
def test_normals_whose_factor_comes_later(lib):
    class Late(lib.distributions.MultivariateNormal):
        def __init__(self, loc, matrix):
            self.loc, self._matrix = loc, matrix
            lib.distributions.Distribution.__init__(self, loc.shape[:-1], loc.shape[-1:], False)

        @property
        def _unbroadcasted_scale_tril(self):
            return lib.linalg.cholesky(self._matrix)

    late = Late(lib.zeros(2), lib.eye(2) * 4)
    assert late.log_prob(lib.zeros(2)).item() == pytest.approx(-3.2241714, abs=1e-5)
    assert late.scale_tril.tolist() == [[2, 0], [0, 2]] and late.rsample().shape == (2,)


def test_what_is_refused_only_when_it_is_made():
    with pytest.raises(NotImplementedError, match="SobolEngine"):
        importlib.import_module("tracejit.quasirandom").SobolEngine(2)
    assert tracejit.ones(2, 3).to_sparse().ndimension() == 2


@pytest.mark.parametrize("lib", [tracejit, torch], ids=["tracejit", "torch"])
def test_divergences_of_classes_that_are_distributions_by_what_they_say(lib):
    D = lib.distributions

    class Says(type):
        def __subclasscheck__(cls, other):
            return issubclass(other, D.Distribution)

    class Any_(metaclass=Says):
        pass

    class Own(D.Normal):
        pass

    D.register_kl(Own, Any_)(lambda p, q: 7)
    assert D.kl_divergence(Own(0.0, 1.0), D.Laplace(0.0, 1.0)) == 7
    with pytest.raises(TypeError):
        D.register_kl(Own, 3)


@pytest.mark.parametrize("lib", [tracejit, torch], ids=["tracejit", "torch"])
def test_users_distributions_are_expanded_and_sparse_matrices_multiplied(lib):
    class Doubled(lib.distributions.Normal):
        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Doubled, _instance)
            new.loc, new.scale = (2 * x.expand(batch_shape) for x in (self.loc, self.scale))
            lib.distributions.Distribution.__init__(new, batch_shape, validate_args=False)
            return new

    class Other(Doubled):
        def __init__(self):
            super().__init__(0.0, 1.0)

    assert Doubled(1.0, 1.0).expand((2,)).mean.tolist() == [2.0, 2.0]
    with pytest.raises(NotImplementedError, match="custom .expand"):
        Other().expand((2,))
    assert lib.dsmm(lib.eye(2).to_sparse(), lib.ones(2, 1)).tolist() == [[1.0], [1.0]]


def test_compiled_modules_are_known_by_their_class():
    net = tracejit.nn.Linear(2, 2)
    kind = tracejit._dynamo.eval_frame.OptimizedModule
    compiled = tracejit.compile(net)
    assert isinstance(compiled, kind) and not isinstance(net, kind)
    assert kind is tracejit._dynamo.OptimizedModule and compiled._orig_mod is net


SAME = """adaptive_avg_pool1d avg_pool1d celu_ channel_shuffle conv_tbc pdist pixel_shuffle
pixel_unshuffle relu_ rrelu_ selu_ threshold_""".split()


@pytest.mark.parametrize("lib", [tracejit, torch], ids=["tracejit", "torch"])
def test_functions_are_one_object_at_both_of_their_places(lib):
    assert [name for name in SAME
            if getattr(lib, name) is not getattr(lib.nn.functional, name)] == []
