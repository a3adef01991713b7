"""Sources of cost categories."""
