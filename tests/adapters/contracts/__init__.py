"""What every store must do, whatever it is made of: one suite for each port, run against each implementation."""
