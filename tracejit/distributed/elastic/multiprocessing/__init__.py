"""PyTorch's `torch.distributed.elastic.multiprocessing`: errors of launched processes."""
