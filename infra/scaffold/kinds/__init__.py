"""What new tools look like: each kind is a tool that works, checked like all code, with its test in
tests/infra/scaffold. The scaffold copies both under another name: `new_tool` and "New tool" are what it replaces.
"""
