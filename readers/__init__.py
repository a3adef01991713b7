"""The tables, read by engines that know nothing of this project: `make readers`."""
