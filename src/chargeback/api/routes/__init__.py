"""The endpoints, one file per noun."""
