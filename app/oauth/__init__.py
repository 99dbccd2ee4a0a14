"""Connecting a third party: an OAuth client for the user, sans I/O."""
