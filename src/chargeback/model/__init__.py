"""The nouns: money, days, billing lines, inventory, usage, chargebacks. Nothing here does I/O."""
