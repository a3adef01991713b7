"""Alembic's entry point: runs the revisions on the connection of :mod:`chargeback.store.control.database`."""

from alembic import context

from chargeback.store.control import schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema.metadata,
    render_as_batch=True,
    transactional_ddl=False,  # the caller owns the transaction
)
context.run_migrations()
