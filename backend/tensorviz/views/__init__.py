"""Pure functions of a validated capture: no process, socket, file or framework."""
