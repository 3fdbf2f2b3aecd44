"""The examples in the docstrings run as they stand."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["failures", "form", "misfit", "exact", "signature", "text", "untyped", "wire"])
def test_the_examples_in_the_docstrings_hold(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"rota.codec.{module}")).failed == 0
