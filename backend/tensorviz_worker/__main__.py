"""Entry: ``python .../tensorviz_worker/__main__.py PLAN``. Started by path, so nothing has to be installed.

Our folder leaves ``sys.path`` before anything is imported from it, and the package is loaded by its location: the
folder that holds it may be a whole environment whose packages must not shadow the user's.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _HERE]


def _load_package() -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(
        "tensorviz_worker", os.path.join(_HERE, "__init__.py"), submodule_search_locations=[_HERE]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["tensorviz_worker"] = package = module_from_spec(spec)
    spec.loader.exec_module(package)


if __name__ == "__main__":
    _load_package()
    from tensorviz_worker.launch import main

    main(sys.argv[1])
