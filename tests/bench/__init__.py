"""The benchmark: this project and what a user would pick instead, on the same work, side by side."""
