"""Allocation: policies, the exact split, the calculation of one day. Pure functions from tables to tables."""
