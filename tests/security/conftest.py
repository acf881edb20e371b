from collections.abc import Iterator

import pytest

from .hosting import Host, running


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """One host for all tests that only ask."""
    folder = tmp_path_factory.mktemp("host")
    workspace = folder / "workspace"
    workspace.mkdir()
    with running(workspace, folder / "runtime") as host:
        yield host
