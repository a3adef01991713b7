"""The data model: money, days, billing lines, inventory, usage, chargebacks. No module here does I/O."""
