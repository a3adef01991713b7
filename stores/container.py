"""``container.py ENDPOINT KEY NAME``: makes a container in Azure Blob Storage."""

from __future__ import annotations

import sys

from azure.storage.blob import ContainerClient

endpoint, key, name = sys.argv[1:]
ContainerClient(endpoint, name, credential=key).create_container()
