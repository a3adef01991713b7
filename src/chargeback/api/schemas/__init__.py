"""Models of requests and responses that several routes share."""
