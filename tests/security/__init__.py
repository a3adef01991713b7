"""What must not happen, tried."""
