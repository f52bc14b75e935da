"""A formula as one kernel: European option prices and their deltas, a million at a time.

The prices are checked against NumPy in float64, the deltas against the closed form.

    python examples/black_scholes.py
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr

import tracejit

RATE, VOLATILITY = 0.03, 0.25
PRICE_TOLERANCE = 5e-7  # of the largest spot: float32 against float64
DELTA_TOLERANCE = 5e-6


def normal_cdf(x: Any) -> Any:
    return 0.5 * (1.0 + tracejit.erf(x * 0.7071067811865476))


def call_price(spot, strike, years):
    """The price of a European call."""
    spread = VOLATILITY * tracejit.sqrt(years)
    d1 = (tracejit.log(spot / strike) + (RATE + 0.5 * VOLATILITY**2) * years) / spread
    discounted = strike * tracejit.exp(-RATE * years)
    return spot * normal_cdf(d1) - discounted * normal_cdf(d1 - spread)


def call_price_numpy(spot, strike, years):
    """The same in NumPy: the price, and its derivative with respect to the spot."""
    spread = VOLATILITY * np.sqrt(years)
    d1 = (np.log(spot / strike) + (RATE + 0.5 * VOLATILITY**2) * years) / spread
    price = spot * ndtr(d1) - strike * np.exp(-RATE * years) * ndtr(d1 - spread)
    return price, ndtr(d1)


def milliseconds(call: Callable[[], Any], calls: int) -> float:
    """Median time of a call, the first left out."""
    call()
    seconds = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(seconds)


def options(count: int) -> list[np.ndarray]:
    """Spots, strikes and years to expiry, as float32."""
    rng = np.random.default_rng(0)
    ranges = ((50, 150), (50, 150), (0.1, 3))
    return [rng.uniform(low, high, count).astype(np.float32) for low, high in ranges]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="ten thousand options")
    count = 10_000 if parser.parse_args(argv).quick else 1_000_000

    arrays = options(count)
    spot, strike, years = map(tracejit.from_numpy, arrays)
    compiled = tracejit.script(call_price)

    exact, exact_delta = call_price_numpy(*(array.astype(np.float64) for array in arrays))
    price_error = np.abs(compiled(spot, strike, years).numpy() - exact).max() / arrays[0].max()

    spot.requires_grad_()
    compiled(spot, strike, years).sum().backward()
    delta_error = np.abs(spot.grad.numpy() - exact_delta).max()
    spot.requires_grad_(False)

    print(f"{count:,} calls, float32\n")
    print(f"  prices against NumPy in float64   {price_error:.1e} of the largest spot")
    print(f"  deltas against the closed form    {delta_error:.1e}\n")
    calls = 5 if count < 100_000 else 20
    for name, call in (
        ("NumPy", lambda: call_price_numpy(*arrays)[0]),
        ("tracejit, eager", lambda: call_price(spot, strike, years)),
        ("tracejit, compiled", lambda: compiled(spot, strike, years)),
    ):
        print(f"  {name:<20} {milliseconds(call, calls):>9.3f} ms")

    print("\nkernels:")
    for kernel in compiled.report().kernels:
        moved = (kernel.bytes_read + kernel.bytes_written) / 1e6
        ops, loops = len(kernel.ops), kernel.loops
        print(f"  {kernel.name}: {ops} ops in {loops} loop(s), {moved:.2f} MB moved")
    right = price_error <= PRICE_TOLERANCE and delta_error <= DELTA_TOLERANCE
    print("\nall as it should be" if right else "\nWRONG: the results differ from NumPy's")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
