"""Tests for plugins: :func:`check_ecosystem` checks that an ecosystem keeps its contract.

It needs no test framework; in pytest it is one line::

    def test_it_keeps_the_contract(tmp_path):
        check_ecosystem(ecosystem, {"invoice_folder": str(tmp_path)})
"""

from chargeback.testing.conformance import Report, check_ecosystem

__all__ = ["Report", "check_ecosystem"]
