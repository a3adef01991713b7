"""Checks of what an ecosystem answers: each value has the type and the range that the contract names.

Every function returns the value to go on with (its texts cleaned, its ids no longer than a column) or raises a
:class:`.values.InvalidValue` that says where in the answer something is wrong, and what is expected there.
"""
