"""All that a tensor of PyTorch's shows, which tensors here show, too, with the same values."""

import warnings

import pytest

import tracejit

pytestmark = pytest.mark.oracle

# What is left out, and why.
ABSENT = {
    "of the inside of PyTorch's own classes": """__array_wrap__ __cuda_array_interface__
        __dlpack_c_exchange_api__ __setstate__ __torch_dispatch__
        _clear_non_serializable_cached_data _dtensor__new__ _fix_weakref
        _make_wrapper_subclass _reduce_ex_internal
        _rev_view_func_unsafe _view_func _view_func_unsafe _use_count _lazy_clone hash_tensor
        _backward_hooks _post_accumulate_grad_hooks""",
    "hooks of casts that only the compiler calls": """_autocast_to_full_precision
        _autocast_to_reduced_precision""",
    "layouts and dtypes that are not here": """_nested_tensor_size _nested_tensor_storage_offsets
        _nested_tensor_strides _to_sparse _to_sparse_bsc _to_sparse_bsr _to_sparse_csc
        _to_sparse_csr _coalesced_ _sparse_mask_projection chalf resize_as_sparse_ smm
        sparse_resize_ sparse_resize_and_clear_ sspaddmm to_mkldnn to_padded_tensor to_sparse_bsc
        to_sparse_bsr""",
    "functions with another name here": "_addmm_activation geqrf slice_inverse _philox_normal_ "
                                        "_philox_uniform_",
}
# Constants and properties that a tensor on the CPU shows.
VALUES = """is_sparse is_sparse_csr is_vulkan is_ipu is_maia is_mtia is_mkldnn is_quantized
is_nested is_meta is_xla is_xpu is_mps is_cpu is_cuda is_leaf requires_grad name ndim
itemsize nbytes output_nr retains_grad _version _has_symbolic_sizes_strides _python_dispatch
grad grad_fn
_base
volatile""".split()


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_every_name_is_there_or_said_to_be_absent(torch):
    absent = set(" ".join(ABSENT.values()).split())
    missing = set(dir(torch.ones(1))) - set(dir(tracejit.ones(1)))
    missing.discard("__slotnames__")  # left by copyreg in classes of which something was copied
    assert missing <= absent, sorted(missing - absent)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_constants_have_the_same_values(torch, name, requires_grad):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = getattr(tracejit.ones(2, 3, requires_grad=requires_grad), name)
        theirs = getattr(torch.ones(2, 3, requires_grad=requires_grad), name)
    assert ours == theirs and type(ours) is type(theirs)


@pytest.mark.parametrize("name", "solve lstsq symeig eig".split())
def test_removed_functions_are_refused(torch, name):
    for module in (tracejit, torch):
        x = module.eye(2)
        for call in (getattr(module, name), getattr(module.Tensor, name)):
            with pytest.raises(RuntimeError, match=r"(?s)since version 1.9.*torch\.linalg"):
                call(x, x) if name in ("solve", "lstsq") else call(x)


PRODUCTS = {
    "stacks of stacks": lambda m: m.ones(2, 3, 2, 2) @ m.ones(2, 3, 2, 2),
    "stack and matrix": lambda m: m.ones(2, 3, 4) @ m.ones(4, 2),
    "vector and stack": lambda m: m.ones(3) @ m.ones(2, 3, 4),
    "stack and vector": lambda m: m.ones(2, 3, 4) @ m.ones(4),
    "broadcast stacks": lambda m: m.ones(3, 1, 2, 2) @ m.ones(2, 2, 2),
    "linear": lambda m: m.nn.functional.linear(m.ones(2, 3, 4), m.ones(5, 4)),
    "matrices": lambda m: m.ones(2, 2) @ m.ones(2, 2),
    "with a history": lambda m: m.ones(2, 3, 2, 2, requires_grad=True) @ m.ones(2, 2),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_no_views(torch, name):
    for module in (tracejit, torch):
        found = PRODUCTS[name](module)
        assert not found._is_view() and found._base is None
        assert found.detach_() is found and not found.requires_grad


def test_compressed_matrices_compute_as_pytorchs(torch):
    dense = [[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]]
    for build in ("to_sparse_csr", "to_sparse_csc"):
        ours, theirs = (getattr(m.tensor(dense), build)() for m in (tracejit, torch))
        assert ours.to_dense().tolist() == theirs.to_dense().tolist() == dense
        assert ours.values().tolist() == theirs.values().tolist()
        assert str(ours.layout).split(".")[1] == str(theirs.layout).split(".")[1]
        for m, x in ((tracejit, ours), (torch, theirs)):
            assert (x @ m.ones(3, 2)).tolist() == [[2.0, 2.0], [4.0, 4.0]]
    crow, col = tracejit.tensor(dense).to_sparse_csr(), torch.tensor(dense).to_sparse_csr()
    assert crow.crow_indices().tolist() == col.crow_indices().tolist() == [0, 1, 3]
    assert crow.col_indices().tolist() == col.col_indices().tolist() == [1, 0, 2]
    with pytest.raises(RuntimeError, match="ccol_indices expected sparse column compressed"):
        crow.ccol_indices()
    with pytest.raises(RuntimeError, match="do not fit"):
        tracejit.sparse_csr_tensor([0, 1, 5], [1, 0], [1.0, 2.0], (2, 2))


def test_gradients_reach_the_values_of_a_compressed_matrix(torch):
    grads = []
    for m in (tracejit, torch):
        values = m.tensor([1.0, 2.0, 3.0], requires_grad=True)
        x = m.sparse_csr_tensor(m.tensor([0, 1, 3]), m.tensor([1, 0, 2]), values, (2, 3))
        (x @ m.tensor([[1.0], [5.0], [7.0]])).sum().backward()
        grads.append(values.grad)
    assert grads[0] is not None and grads[0].tolist() == [5.0, 1.0, 7.0]


def test_stacks_of_sparse_matrices_are_transposed(torch):
    for m in (tracejit, torch):
        x = m.sparse_coo_tensor(m.tensor([[0, 1], [0, 1], [2, 0]]), m.tensor([3.0, 4.0]), (2, 2, 3))
        assert tuple(x.mT.shape) == (2, 3, 2)
        assert x.mT.to_dense().tolist() == x.to_dense().mT.tolist()
