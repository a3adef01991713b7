"""What requests and answers look like: the models that the OpenAPI document is made of."""
