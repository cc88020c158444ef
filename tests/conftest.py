"""Fixtures and hypothesis profiles shared by all tests."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_PROFILE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("check", max_examples=60, derandomize=True, **_PROFILE)
settings.register_profile("quick", max_examples=15, derandomize=True, **_PROFILE)
settings.register_profile("thorough", max_examples=3000, **_PROFILE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "check"))


@pytest.fixture(scope="session")
def real_log() -> Callable[[str], Path]:
    """Return a function from the name of a real log to its path; it skips where there is none.

    Real logs lie in the folder that the environment variable HPCGYM_TRACES names, as
    `<name>.swf.gz`; they are never copied into the project.
    """

    def find(name: str) -> Path:
        folder = os.environ.get("HPCGYM_TRACES")
        if not folder:
            pytest.skip("HPCGYM_TRACES is not set: no real logs")
        path = Path(folder) / f"{name}.swf.gz"
        if not path.exists():
            pytest.skip(f"{path} does not exist")
        return path

    return find
