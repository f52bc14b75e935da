import kornia
from given import array


def functions():
    def filtered(x):
        return (
            kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)),
            kornia.filters.sobel(x),
            kornia.color.rgb_to_grayscale(x),
            kornia.color.rgb_to_hsv(x),
        )

    def warped(x, angle):
        return kornia.geometry.transform.rotate(x, angle), kornia.geometry.transform.resize(
            x, (5, 7)
        )

    x = array(2, 3, 8, 8).sigmoid()
    return [("filters and colors", filtered, [x]), ("geometry", warped, [x, array(2) * 20])]
