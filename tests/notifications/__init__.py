"""Tests of messages, and of the ways to send them."""
