"""``python -m tensorviz`` is the command ``tensorviz``."""

import sys

from tensorviz.edges.cli import main

if __name__ == "__main__":
    sys.exit(main())
