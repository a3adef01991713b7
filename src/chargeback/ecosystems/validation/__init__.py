"""Checks of the results of an ecosystem: each value has the type and the range that the contract names.

Every function returns the value to use (texts cleaned, ids cut to the length of a column) or raises a
:class:`.values.InvalidValue` that says where the result is not valid, and what is expected there.
"""
