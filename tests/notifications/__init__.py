"""Tests of messages, and of how they are sent."""
