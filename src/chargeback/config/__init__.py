"""The configuration: one YAML file, with ``${NAME}`` from the environment. All mistakes are reported at once."""

from chargeback.config.configuration import Configuration, Tenant, TopicStatus
from chargeback.config.loading import load_configuration

__all__ = ["Configuration", "Tenant", "TopicStatus", "load_configuration"]
