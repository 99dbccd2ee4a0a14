"""The laptop: everything that `make run` starts instead of AWS. Never deployed."""
