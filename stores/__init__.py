"""Object stores besides that of the tests: `make stores`."""
