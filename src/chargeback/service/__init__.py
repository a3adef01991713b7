"""Use cases below all fronts: the API and the command line call the same, none calls another front."""
