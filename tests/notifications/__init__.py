"""Tests of what is told, and of the ways to tell it."""
