"""Names that older PyTorch programs use mean what they mean there."""

from importlib import import_module

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


SHAPES = [(1, 1, 4), (1, 1, 3), (1,)]  # of an input, a weight and a bias


class Shaped:
    """For `jit.interface` and `jit._overload_method`."""

    def shape(self) -> int:
        pass


EXPRESSIONS = """
m.FloatTensor([1, 2]).tolist()
m.FloatTensor([[1, 2], [3, 4]]).dtype
m.LongTensor([1.5, -1.5]).tolist()
m.ByteTensor([1, 0]).dtype
tuple(m.FloatTensor(2, 3).shape)
tuple(m.LongTensor().shape)
tuple(m.IntTensor(m.Size([2])).shape)
m.FloatTensor(m.ones(2)).tolist()
m.FloatTensor(m.ones(2).double())
m.FloatTensor('a')
m.FloatTensor(2.5)
isinstance(m.ones(1), m.FloatTensor)
isinstance(m.ones(1).double(), m.FloatTensor)
isinstance(m.nn.Parameter(m.ones(1)), m.FloatTensor)
isinstance(m.ones(1) > 0, m.BoolTensor)
isinstance(m.ones(1), m.cuda.FloatTensor)
m.ones(2).type(m.LongTensor).dtype
m.arange(2).type(m.Tensor)
m.arange(2).type('torch.Tensor').dtype
m.ones(2).type(m.nn.Parameter)
m.ones(2).type(m.DoubleTensor).tolist()
str(m.float32)[6:], f'{m.bool}', '%s' % m.int64, str(m.complex64) == 'torch.complex64'
m.finfo(m.float32)
m.finfo(m.float16)
m.finfo(m.bfloat16)
m.finfo(m.float64)
m.finfo(m.complex64)
m.finfo().eps
m.finfo(m.float16).resolution
(m.finfo(m.float32).bits, m.finfo(m.float32).dtype, m.finfo(m.float32).tiny)
m.iinfo(m.int8)
m.iinfo(m.int64).max
m.iinfo(m.uint8).bits
m.finfo(m.int8)
m.iinfo(m.float32)
m.finfo(m.float32) == m.finfo(m.float32)
m._assert(True, 'x')
m._assert(False, 'x')
m.equal(m.ones(2), m.ones(2))
m.equal(m.ones(2), m.ones(3))
m.equal(m.tensor([float('nan')]), m.tensor([float('nan')]))
m.ones(2).equal(m.zeros(2))
m.jit.is_scripting()
m.jit.is_tracing()
m.jit.annotate(int, 3)
m.jit.annotations.List[int]
m.jit.annotations.Optional[int]
m.torch is m
m.jit.ignore(f) is f
m.jit.unused(f) is f
m.jit.export(f) is f
m.jit._overload_method(Shaped.shape) is Shaped.shape
m.jit.interface(Shaped) is Shaped
issubclass(m.jit.ScriptModule, m.nn.Module)
isinstance(m.nn.Linear(1, 1), m.jit.ScriptModule)
m.legacy_contiguous_format is m.contiguous_format
m.utils.hooks.RemovableHandle is type(m.ones(1, requires_grad=True).register_hook(print))
m.utils.checkpoint.get_device_states(m.ones(2))
m.utils.checkpoint.set_device_states([], [])
(m.version.hip, m.version.xpu, m.version.debug, m.cuda._initialized)
m.nn.Conv2d(1, 1, 2)._conv_forward(m.ones(1, 3, 3), m.ones(2, 1, 2, 2), None).tolist()
m.nn.Conv1d(1, 1, 3, 1, 2, 1, 1, True, 'circular')._conv_forward(*map(m.ones, L)).tolist()
[m.set_default_tensor_type(x) or m.ones(1).dtype for x in ('torch.HalfTensor', m.FloatTensor)]
m.set_default_tensor_type(m.LongTensor)
m.set_default_tensor_type(m.float64)
m.jit.Final[int] is not None
(m.backends.cudnn.benchmark, m.backends.cudnn.deterministic)
m.ones(6).reshape_as(m.ones(2, 3)).tolist()
isinstance(m.nn.MSELoss(), m.nn.modules.loss._Loss)
m.nn.ZeroPad2d((1, 0, 2, 0))(m.ones(1, 1, 2, 2)).tolist()
m.nn.ConstantPad2d(1, 2.5)(m.ones(1, 1, 2, 2)).tolist()
m.nn.ReflectionPad2d(1)(m.arange(9.0).reshape(1, 1, 3, 3)).tolist()
m.nn.ReplicationPad2d(1)(m.arange(4.0).reshape(1, 1, 2, 2)).tolist()
repr(m.nn.LazyBatchNorm1d(momentum=0.2))
m.nn.LazyBatchNorm1d()(m.arange(6.0).reshape(3, 2)).abs().round(decimals=4).tolist()
tuple(m.nn.init.kaiming_normal(m.zeros(2, 3)).shape)
tuple(m.nn.init.xavier_uniform(m.zeros(2, 3)).shape)
m.nn.init._calculate_fan_in_and_fan_out(m.ones(2, 3, 4, 5))
m.nn.init._calculate_fan_in_and_fan_out(m.ones(2))
m.nn.init._calculate_correct_fan(m.ones(2, 3), 'fan_out')
[x.tolist() for x in m.arange(5).split(split_size=2)]
[x.tolist() for x in m.ones(2, 3).split(split_size=[1, 2], dim=-1)]
[x.tolist() for x in m.split(tensor=m.arange(5), split_size_or_sections=2)]
tuple(m.ones(6).reshape(shape=(2, 3)).view(size=(3, 2)).shape)
tuple(m.reshape(input=m.ones(6), shape=(2, 3)).permute(dims=(1, 0)).shape)
tuple(m.ones(6).expand(size=(2, 6)).repeat(repeats=(2, 1)).tile(dims=(2,)).shape)
tuple(m.ones(2, 3).swapaxes(axis0=0, axis1=1).shape)
m.ones(1).new_zeros(size=(2,)).tolist() + m.ones(1).new_ones(size=(2,), dtype=m.int64).tolist()
tuple(m.ones(1).new_empty(size=(2, 3), device='cpu').shape)
m.zeros(size=(2,)).tolist() + m.ones(size=(2,)).tolist() + list(m.empty(size=(2,)).shape)
tuple(m.ones(6).resize_(size=(2, 3)).shape)
m.arange(end=4).tolist()
m.accelerator.is_available()
m.accelerator.device_count()
m.accelerator.current_accelerator()
m.backends.mps.is_available()
m.backends.mps.is_built()
(m.ones(1).is_xpu, m.ones(1).is_mps, m.ones(1).is_xla)
float(m.nn.utils.clip_grad_norm([m.nn.Parameter(m.ones(2))], 1.0))
m.get_float32_matmul_precision()
m.set_float32_matmul_precision('all')
m.compiler.is_compiling()
m.compiler.disable(f)(3)
m.compiler.disable()(f)(3)
m.compiler.reset()
(m.distributed.is_initialized(), m.version.cuda is None)
m.cuda.memory_reserved()
list(m.utils.data.DistributedSampler(range(5), 2, 1, shuffle=False))
list(m.utils.data.distributed.DistributedSampler(range(5), 2, 1, False, drop_last=True))
m.utils.data.DistributedSampler(range(5), 2, 2)
m.distributed.get_rank()
(m.channels_last, m.preserve_format, m.contiguous_format)
m.ones(2, 3, 4, 5).contiguous(memory_format=m.channels_last).tolist()
[x.tolist() for x in m.meshgrid(m.arange(2), m.arange(3), indexing='ij')]
[x.tolist() for x in m.meshgrid([m.arange(2), m.arange(3), m.arange(2)], indexing='xy')]
[x.tolist() for x in m.meshgrid(m.tensor(1), m.arange(2), indexing='ij')]
m.meshgrid(m.arange(2), m.arange(3), indexing='xy')[0].stride()
m.meshgrid(m.arange(2), m.arange(3), indexing='ij')[1].stride()
m.meshgrid(m.ones(2), m.ones(2).double(), indexing='ij')
m.fx.wrap(f) is f
m.fx.wrap('f')
m.utils.dlpack.from_dlpack(m.utils.dlpack.to_dlpack(m.arange(3))).tolist()
type(m.utils.dlpack.to_dlpack(m.arange(3))).__name__
type(m.utils.dlpack.to_dlpack(m.ones(1, requires_grad=True))).__name__
m._utils._flatten_dense_tensors([m.ones(2, 1), m.zeros(1)]).tolist()
[x.tolist() for x in m._utils._unflatten_dense_tensors(m.arange(3), [m.ones(2, 1), m.zeros(1)])]
its('optim.optimizer').required
m.optim.Optimizer([m.ones(1)], {'lr': its('optim.optimizer').required})
m.optim.Optimizer([{'params': [m.ones(1)], 'x': 1}], {'x': its('optim.optimizer').required})
m.jit.script_method is not None
(m.distributed.ReduceOp.SUM.name, m.distributed.Backend('gloo'), m.distributed.Backend.NCCL)
m.distributed.ProcessGroup.__name__
tuple(m.distributions.utils._standard_normal((2, 3), m.float64, 'cpu').shape)
m.distributions.utils._standard_normal(m.Size([2]), dtype=m.float64, device='cpu').dtype
type(m.__config__.show()).__name__
its('nn.parallel.distributed').DistributedDataParallel.__name__
its('distributed.nn').all_reduce is not None
its('jit.annotations').Dict[str, int]
its('_dynamo').is_compiling()
[m._C._jit_set_profiling_executor(on) for on in (False, True, True)]
[m._C._jit_set_profiling_mode(on) for on in (False, True, True)]
[m._C._jit_set_autocast_mode(on) for on in (False, True, True)]
m._C._jit_override_can_fuse_on_gpu(True)
m._C._jit_override_can_fuse_on_cpu(False)
m._C._jit_set_texpr_fuser_enabled(False)
m._C._LinAlgError is m.linalg.LinAlgError
isinstance(m.nn.Parameter, m._C._TensorMeta)
its('_C').Value.__name__
its('_dynamo').config.suppress_errors
its('_dynamo').allow_in_graph(f) is f
its('utils.model_zoo').load_url is its('hub').load_state_dict_from_url
its('hub')._get_torch_home()
its('jit.annotations').BroadcastingList2[int]
m.jit._script_if_tracing is not None
m._C._log_api_usage_once('a')
m._C._get_tracing_state()
m._C._are_functorch_transforms_active()
m.func.vmap(lambda x: x + m._C._are_functorch_transforms_active())(m.zeros(2)).tolist()
m._C._functorch.is_legacy_batchedtensor(m.ones(1))
m._C._get_privateuse1_backend_name()
its('_subclasses.fake_tensor').is_fake(m.ones(1))
its('fx.experimental.proxy_tensor').get_proxy_mode()
[m.is_autocast_enabled(k) for k in ('mps', 'xpu', 'xla', 'ipu', 'hpu', 'mtia', 'maia')]
[m.get_autocast_dtype(k) for k in ('mps', 'xpu', 'xla', 'ipu', 'hpu', 'mtia', 'maia')]
m.meshgrid(indexing='ij')
m.meshgrid(m.ones(2), indexing='a')
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_it_is_what_pytorch_has(expression):
    def f(x):
        return x

    def found(library):
        try:
            names = {"m": library, "f": f, "Shaped": Shaped, "L": SHAPES,
                     "its": lambda name: import_module(f"{library.__name__}.{name}")}
            text = str(eval(expression, names))
        except Exception as error:
            long = "TensorOptions" in str(error) or "expected tracejit" in str(error)
            text = f"{type(error).__name__} {'' if long else error}"
        for word in ("torch.", "tracejit.", "typing."):
            text = text.replace(word, "")
        return text.replace("<class 'list'>", "List")

    assert found(tracejit) == found(torch)


def test_grids_are_views_that_programs_capture():
    def grids(x, y):
        a, b = tracejit.meshgrid(x, y, indexing="ij")
        return a * b, a

    captured = tracejit.script(grids)
    for n in (2, 3, 1):
        x, y = tracejit.rand(n, requires_grad=True), tracejit.rand(4)
        product, rows = captured(x, y)
        assert tracejit.equal(product, x[:, None] * y) and rows._base is not None
        (product.sum() + rows.sum()).backward()
        assert tracejit.allclose(x.grad, (y.sum() + 4).expand(n))
    assert captured.report().cache_misses == 1
