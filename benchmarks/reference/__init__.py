"""The obvious implementation of the same service, small and fair, for comparison."""
