"""The obvious implementation of the same service, small and honest, to compare with."""
