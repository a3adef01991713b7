"""``plugin_settings`` of a tenant of ACME storage."""

from chargeback.ecosystems.settings import LocalPath, PluginSettings


class AcmeSettings(PluginSettings):
    """The folder into which ACME delivers ``costs.csv``, ``buckets.csv`` and ``requests.csv``."""

    invoice_folder: LocalPath
