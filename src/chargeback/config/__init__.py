"""What may be configured: one YAML file, ``${NAME}`` from the environment, every mistake named at once."""

from chargeback.config.configuration import Configuration, Tenant, TopicStatus
from chargeback.config.loading import load_configuration

__all__ = ["Configuration", "Tenant", "TopicStatus", "load_configuration"]
