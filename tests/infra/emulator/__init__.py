"""Tests of the Lambda and HTTP API emulator; they run the functions under sample/, never the application."""
