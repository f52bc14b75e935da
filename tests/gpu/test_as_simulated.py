"""What the simulator's tests say of a device holds on a GPU: ops, captured programs, failures."""

from tests.cuda.simulated.test_captured import *  # noqa: F403
from tests.cuda.simulated.test_eager import *  # noqa: F403
