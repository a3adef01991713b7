"""A generated organisation, served through the provider's real API shapes."""
