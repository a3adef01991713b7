"""The bill in FOCUS before the official validator: `make focus-check`."""
