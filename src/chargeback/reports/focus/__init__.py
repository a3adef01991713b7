"""The bill as the FinOps Open Cost and Usage Specification has it."""
