"""A function whose tools have effects in a shop outside of it, where they are counted."""
