"""Chargeback: what every team really spent on Kafka, to the last digit."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("chargeback")
except PackageNotFoundError:  # the source tree is on the path, but the package is not installed
    __version__ = "0.0.0-dev"
