"""MCP revision 2026-07-28, sans I/O: bytes in, values out, time and chance as arguments."""
