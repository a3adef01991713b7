"""Tests of Confluent Cloud, against a generated organization served in the provider's API shapes."""
