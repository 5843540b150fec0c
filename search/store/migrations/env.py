"""Alembic's environment. The connection comes from `upgrade`; Alembic runs this file, nothing imports it."""

from alembic import context

from search.store.migrations.upgrade import settings

connection = context.config.attributes["connection"]
context.configure(connection=connection, **settings())
with context.begin_transaction():
    context.run_migrations()
