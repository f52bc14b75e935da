"""Names that are refused, and arguments of decorators that mean nothing here."""

from __future__ import annotations

import tracejit as tj
from tests.errors.control_flow import data
from tests.errors.entries import raises
from tracejit import nn

# -- decorators ------------------------------------------------------------------------------------


@raises(TypeError, "script: expected a function or a module, got int", plainly=False)
def script_of_no_function(jit):
    jit(3)  # here


@raises(
    ValueError,
    "mode: expected one of eager, graph, python, compiled; got 'fast'",
    plainly=False,
)
def unknown_mode(jit):
    jit(tj.exp, mode="fast")  # here


@raises(ValueError, "numerics: expected 'fast' or 'eager', got 'exact'", plainly=False)
def unknown_numerics(jit):
    jit(tj.exp, numerics="exact")  # here


@raises(TypeError, "f(x, y) cannot be called like this", plainly=False)
def graph_of_wrong_arguments(jit):
    @jit
    def f(x, y):
        return x * y

    f.graph(data())  # here


@raises(
    tj.CaptureError,
    "f has no single graph:\n<return x * x.tolist()[0]>  return x * x.tolist()[0]\n    the "
    "function calls tolist()\n    hint: compute with tensors, and convert the result outside "
    "the captured function",
    plainly=False,
)
def no_single_graph(jit):
    @jit
    def f(x):
        return x * x.tolist()[0]

    f.graph(data())  # here


@raises(
    TypeError,
    "called_with_wrong_arguments.<locals>.f() missing 1 required positional argument: 'y'",
    modes=("graph", "compiled"),
)
def called_with_wrong_arguments(jit):
    @jit
    def f(x, y):
        return x * y

    f(data())  # here


@raises(
    RuntimeError,
    "Either mode or options can be specified, but both can't be specified at the same time.",
)
def mode_and_options(jit):
    tj.compile(tj.exp, mode="default", options={})  # here


@raises(
    RuntimeError,
    "Unrecognized mode=fast, should be one of: default, lite, reduce-overhead, "
    "max-autotune-no-cudagraphs, max-autotune, eager, graph, python, compiled",
)
def unknown_mode_of_compile(jit):
    tj.compile(tj.exp, mode="fast")  # here


@raises(
    NotImplementedError,
    "compile: a backend of the user's would be given PyTorch's graphs; fn.graph() shows tracejit's",
)
def backend_of_the_users(jit):
    tj.compile(tj.exp, backend=lambda graph, inputs: graph)  # here


@raises(
    RuntimeError,
    "Invalid backend: 'fast', should be one of: inductor, cudagraphs, eager, aot_eager, "
    "aot_eager_decomp_partition",
)
def unknown_backend(jit):
    tj.compile(tj.exp, backend="fast")  # here


# -- TorchScript -----------------------------------------------------------------------------------


@raises(
    NotImplementedError,
    "jit.save cannot write compiled programs to files; save m.state_dict() with tracejit.save, "
    "and load it into a module made from the source",
)
def program_is_saved(jit):
    tj.jit.save(nn.Identity(), "file.pt")  # here


@raises(
    NotImplementedError,
    "jit.load: TorchScript files hold code, which tracejit does not run; make the module from its "
    "source, and load its state_dict with tracejit.load",
)
def program_is_loaded(jit):
    tj.jit.load("file.pt")  # here


@raises(NotImplementedError, "jit.trace_module traces forward only, not other")
def method_is_traced(jit):
    tj.jit.trace_module(nn.Identity(), {"other": data()})  # here


@raises(AttributeError, "module 'tracejit.jit' has no attribute 'unknown'")
def unknown_name_of_jit(jit):
    tj.jit.unknown  # noqa: B018  # here


@raises(TypeError, "a broadcasting list is an annotation; it cannot be called")
def broadcasting_list_is_called(jit):
    from tracejit.jit.annotations import BroadcastingList2

    BroadcastingList2(3)  # here


@raises(AttributeError, "forward", plainly=False)
def module_without_forward(jit):
    del jit(nn.Identity()).forward  # here


# -- names of PyTorch ------------------------------------------------------------------------------


@raises(AttributeError, "module 'tracejit' has no attribute 'unknown'")
def unknown_name(jit):
    tj.unknown  # noqa: B018  # here


@raises(AttributeError, "module 'tracejit.backends' has no attribute 'unknown'")
def unknown_backend_switch(jit):
    tj.backends.unknown  # noqa: B018  # here


@raises(
    NotImplementedError,
    "onnx.export: programs are not written as ONNX; save model.state_dict() with "
    "tracejit.save, which PyTorch loads, and export it there",
)
def export_to_onnx(jit):
    tj.onnx.export(nn.Identity(), (data(),), "file.onnx")  # here


@raises(
    ValueError,
    "Default process group has not been initialized, please make sure to call init_process_group.",
)
def no_process_group(jit):
    tj.distributed.get_rank()  # here


@raises(
    ValueError,
    "Error initializing torch.distributed using env:// rendezvous: environment variable "
    "MASTER_ADDR expected, but not set",
)
def process_group(jit):
    tj.distributed.init_process_group("gloo", rank=0, world_size=2)  # here


@raises(RuntimeError, "set_num_interop_threads expects a positive integer")
def threads_between_operations(jit):
    tj.set_num_interop_threads(0)  # here


@raises(
    RuntimeError,
    "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got loud",
)
def debug_mode(jit):
    tj.set_deterministic_debug_mode("loud")  # here


@raises(AssertionError, "Torch not compiled with XPU enabled")
def other_device(jit):
    data().xpu()  # here
