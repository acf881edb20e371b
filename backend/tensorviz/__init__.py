"""tensorviz shows what a PyTorch model really executed."""

__version__ = "0.1.0"
