"""Migrations of the control database, run by Alembic."""
