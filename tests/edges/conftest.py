from pathlib import Path

import pytest

from .models import BAD, GOOD, tensorviz, write


@pytest.fixture(scope="session")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with good.py and bad.py and their captures, made by the real command."""
    folder = write(tmp_path_factory.mktemp("captures"), good=GOOD, bad=BAD)
    assert tensorviz(folder, "capture", "good.py").returncode == 0
    assert tensorviz(folder, "capture", "bad.py").returncode == 3
    return folder
