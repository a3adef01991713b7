"""Use cases shared by the front ends: the API and the command line."""
