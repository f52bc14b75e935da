from e3nn import o3
from given import array


def functions():
    product = o3.FullyConnectedTensorProduct(
        "2x0e + 1x1o", "1x0e + 1x1o", "2x0e + 1x1o", internal_weights=False, shared_weights=True
    )
    weight = array(product.weight_numel)

    def harmonics(x):
        return o3.spherical_harmonics([0, 1, 2], x, normalize=True)

    def combined(x, y):
        return product(x, y, weight)

    return [
        ("spherical harmonics", harmonics, [array(4, 3)]),
        ("tensor product", combined, [array(4, 5), array(4, 4, seed=1)]),
    ]
