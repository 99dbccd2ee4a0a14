"""Composition roots, one for each function: the only place where settings meet adapters and cores."""
