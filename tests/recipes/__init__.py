"""The recipes of docs/access.md, run by real programs."""
