"""Effects on the world: that they happen once, that the user allowed them, and how often one may ask. Sans I/O."""
