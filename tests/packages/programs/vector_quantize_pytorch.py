import torch
from given import array, filled
from vector_quantize_pytorch import FSQ, VectorQuantize


def functions():
    quantizer = filled(VectorQuantize(dim=8, codebook_size=16, decay=0.8), 1.0).eval()
    scalar = FSQ(levels=[5, 4, 3])

    def quantized(x):
        with torch.no_grad():
            return quantizer(x)

    return [
        ("vector quantization", quantized, [array(2, 6, 8)]),
        ("finite scalar quantization", scalar, [array(2, 6, 3)]),
    ]
