"""Runtime: kernels in memory and on disk, the native runner, programs bound to sizes, replays and
their backwards."""
