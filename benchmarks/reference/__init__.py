"""The obvious implementation of the same service, small and fair, to compare with."""
