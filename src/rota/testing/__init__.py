"""What others need to test with Rota: the contract that every store keeps, and a model to compare stores with."""

import sys

if "pytest" in sys.modules:  # so that a broken promise shows the values that broke it
    sys.modules["pytest"].register_assert_rewrite("rota.testing.contract", "rota.testing.machine")
