"""The REST contract, row by row: a real service over a generated organisation, queried over real connections."""
