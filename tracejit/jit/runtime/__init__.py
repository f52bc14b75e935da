"""Run it again: kernels on disk and in memory, the native runner, programs bound to sizes."""
