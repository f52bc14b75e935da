"""Counts what programs start on a device.

In: pytest's monkeypatch, the class of the kernels. Out: a dict that fills while a test runs:
kernels by the way they are dealt out, host calls by op.
"""


def counted(monkeypatch, kernel_class):
    from tracejit.jit.runtime import cuda_executable

    counts = {}

    def counting(key, run):
        def wrapper(self, *args):
            name = key(self, *args)
            counts[name] = counts.get(name, 0) + 1
            return run(self, *args)

        return wrapper

    call = cuda_executable._Call
    kind = counting(lambda self, *_: self.kind, kernel_class.launch)
    host = counting(lambda self, n: self.executable.program.instructions[n].host.op.name,
                    call._host_call)  # fmt: skip
    monkeypatch.setattr(kernel_class, "launch", kind)
    monkeypatch.setattr(call, "_host_call", host)
    return counts
