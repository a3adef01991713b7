"""The models of requests and responses, from which the OpenAPI document is generated."""
