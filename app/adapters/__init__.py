"""Everything that touches the world, named by its technology. Adapters get arguments, never settings."""
