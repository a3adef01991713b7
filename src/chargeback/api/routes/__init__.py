"""The endpoints: a file per noun has the models of its requests and responses, and its routes."""
