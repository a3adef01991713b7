"""Alembic's entry: runs the revisions on the connection that :mod:`chargeback.store.control.database` gives."""

from alembic import context

from chargeback.store.control import schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema.metadata,
    render_as_batch=True,
    transactional_ddl=False,  # the caller owns the transaction
)
context.run_migrations()
