"""The contract: what a capture, an attempt and a problem are. Imports neither torch nor user code."""
