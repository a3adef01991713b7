"""What follows from stored evidence, calculated again: this room reads a tenant's storage and never writes to it."""
