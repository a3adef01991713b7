"""The bill in the FinOps Open Cost and Usage Specification (FOCUS)."""
