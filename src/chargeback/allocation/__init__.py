"""Allocation: policies, the exact split, the calculation of one day. Pure: tables in, tables out."""
