"""`make doctor`: says what is wrong with a deployment, and what to do about it, before a user finds out."""
