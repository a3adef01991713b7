"""A cost category that every tenant of the tests has from the start."""

from __future__ import annotations

from typing import Any

#: The key of the category.
SEEDED = "cost_center"
SEED: dict[str, Any] = {
    "values": {
        "payments": {"name": "Payments", "parent": "retail"},
        "orders": {"name": "Orders", "parent": "retail"},
        "retail": {"name": "Retail"},
        "platform": {"name": "Platform"},
    },
    "rules": [
        {"match": {"product_type": "SUPPORT*"}, "assign": "platform"},
        {"match": {"identity": ["sa-1"]}, "assign": "payments"},
        {"match": {"topic": {"regex": "[a-m]$"}}, "assign": "orders"},
        {"match": {"product_type": ["KAFKA_STORAGE", "KAFKA_BASE"]}, "split": {"payments": "60", "orders": "40"}},
    ],
    "share": [{"from": "platform", "to": "*", "by": "proportional"}],
}
