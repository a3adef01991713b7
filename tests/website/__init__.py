"""Tests of the documentation's website."""
