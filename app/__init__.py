"""Roundtrip: a serverless MCP server whose tools can stop, ask the user, and go on from any instance."""
