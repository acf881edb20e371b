"""Where the outside comes in: the command line, HTTP, and the Python API."""
