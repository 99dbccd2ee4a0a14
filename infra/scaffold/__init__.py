"""Writes the first version of a tool and of its test: `python -m infra.scaffold`, or `make new-tool`."""
