"""Writes the first version of a tool and of its test, and takes the example tools away. `python -m infra.scaffold`."""
