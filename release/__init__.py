"""The packages of a release: built, tried in new environments, and listed with all their parts."""
