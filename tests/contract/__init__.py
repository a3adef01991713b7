"""The REST contract: a real service for a generated organisation, tested over real connections."""
