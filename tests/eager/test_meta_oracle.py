"""Tensors without values are PyTorch's: shapes, strides, dtypes, printed forms and errors."""

import io
import warnings
from importlib import import_module

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = """
x
t.zeros(2, dtype=t.int32, device='meta'), t.arange(5, device=M), t.tensor([1, 2.], device='meta')
t.zeros(2, device='meta', requires_grad=True) * 2
x.is_meta, t.ones(1).is_meta, x.device, repr(t.device('meta')), x.is_cpu, x.is_cuda, x.get_device()
x.type(), x.data_ptr(), x.untyped_storage().nbytes(), x.untyped_storage().device
x + x.t().contiguous().t(), x @ x.T, x > 0, x.sum(1, keepdim=True), t.cat([x, x], 1)
x.t().stride(), x[1:].storage_offset(), x[:, ::2].stride(), x.unsqueeze(0).expand(5, 3, 4).stride()
x.view(2, 6), x.t().reshape(12), x.reshape(-1), x.flatten().unfold(0, 3, 2)
x.t().view(12)
x[t.tensor([0, 1])], x[t.tensor([0, 1], device='meta')], x[:, [0, 2]], x[0, 1]
x.masked_fill(x > 0, 1), x.where(x > 0, x), x.topk(2), x.max(1).values, x.sort(0).indices
[part.shape for part in t.linalg.svd(x)], x.softmax(1), F.dropout(x), F.layer_norm(x, (4,))
x.add_(1), x.normal_(), x.uniform_(), x.zero_(), x._version
x.__setitem__(0, 1), x._version
x.sum().item()
float(x.sum())
bool(x.sum())
x.tolist()
x.sum().tolist()
x.numpy()
np.asarray(x)
x.cpu()
x.to('cpu')
t.ones(2).to('meta'), x.to('meta') is x, x.copy_(t.ones(3, 4)), x + t.tensor(1.)
t.ones(3, 4).copy_(x)
t.empty(1 << 20, 1 << 18, device='meta').t() @ t.empty(1 << 20, 1 << 10, device='meta')
copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(), x.detach(), t.empty_like(x)
t.zeros_like(x, device='cpu').device, t.rand_like(x), x.new_zeros(2), x.new_tensor([1.])
f'{x.sum()}', str(x), len(x), [row.shape for row in x]
saved(x), saved(x.t()), saved(nn.Parameter(x)), saved({'w': t.ones(2)}, map_location='meta')
(t.manual_seed(0), t.rand(3, device='meta'), nn.Linear(2, 2, device='meta'), t.rand(1).shape)[3]
unmoved(lambda: (t.rand(3, device=M), nn.Linear(3, 3, device=M), t.randperm(4, device=M)))
net(), {p.device for p in net().parameters()}, {b.device for b in net().buffers()}
net()(t.empty(2, 3, 8, 8, device='meta'))
differentiated(net())
net().to('cpu')
{p.device for p in copy.deepcopy(net()).to_empty(device='cpu').parameters()}
loaded(net(), assign=True)(t.ones(2, 3, 8, 8)).shape
{p.device for p in loaded(net()).parameters()}, warned(lambda: loaded(net()))
inside(lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)(t.empty(2, 5, 16)))
inside(lambda: (nn.LSTM(4, 5, 2)(t.empty(3, 2, 4))[0].detach(), nn.Embedding(10, 3).weight))
inside(lambda: (F.cross_entropy(x, t.zeros(3, dtype=t.long)), t.from_numpy(np.ones(2))))
t.add(x, x, out=t.empty(3, 4, device='meta')), t.complex(x, x), x.double(), x.half()
t.autocast('meta')
""".strip().splitlines()


def shown(library, call):
    t, nn = library, library.nn
    F = import_module(f"{library.__name__}.nn.functional")

    def net():
        return inside(lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
                                            nn.Flatten(), nn.Linear(8 * 36, 5), nn.LayerNorm(5)))

    def inside(make):
        with t.device("meta"):
            return make()

    def loaded(module, **how):
        module.load_state_dict(net().to_empty(device="cpu").state_dict(), **how)
        return module

    def saved(x, **how):
        file = io.BytesIO()
        t.save(x, file)
        file.seek(0)
        return t.load(file, **how)

    def unmoved(draw):
        before = t.get_rng_state().clone()
        draw()
        return bool((t.get_rng_state() == before).all())

    def warned(run):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            run()
        return len([w for w in seen if "meta" in str(w.message)])

    def differentiated(module):
        module(t.empty(2, 3, 8, 8, device="meta")).sum().backward()
        return [p.grad for p in module.parameters()]

    names = {**globals(), **locals(), "x": t.empty(3, 4, device="meta"), "M": t.device("meta")}
    try:
        return repr(eval(call, names)).replace("tracejit", "torch")
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("tracejit", "torch")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_what_has_no_values_is_as_in_pytorch(call):
    assert shown(import_module("tracejit"), call) == shown(torch, call)
