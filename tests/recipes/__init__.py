"""The recipes of docs/access.md, tested with real programs."""
