"""Models and migrations describe the same tables, beside Optuna's too."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from search.store import migrations
from search.store.location import locate
from search.store.migrations.upgrade import alembic_config, settings
from search.store.models import Base
from search.store.session import Store, open_store


def difference(store: Store) -> list[object]:
    with store.engine.connect() as connection:
        return compare_metadata(MigrationContext.configure(connection, opts=settings()), Base.metadata)


def make_optuna_tables(store: Store) -> None:
    import optuna

    storage = optuna.storages.RDBStorage(store.optuna_url, engine_kwargs=store.optuna_engine_kwargs)
    storage.remove_session()
    storage.engine.dispose()


def test_autogenerate_finds_no_difference(store: Store) -> None:
    assert difference(store) == []


def test_optunas_tables_are_ignored_and_left_alone(store: Store) -> None:
    make_optuna_tables(store)
    assert difference(store) == []
    tables = set(inspect(store.engine).get_table_names())
    assert {"paretovit_version", "alembic_version", "trials", "candidate"} <= tables


def test_optuna_may_have_been_there_first(database: str) -> None:
    if "://" not in database:
        Path(database).touch()
    early = Store(locate(database))
    make_optuna_tables(early)
    early.close()
    store = open_store(database, create=True)
    assert difference(store) == []
    with store.read() as reader:
        assert reader.rows("SELECT version_num FROM alembic_version")
    store.close()


def test_a_downgrade_removes_our_tables_and_an_upgrade_brings_them_back(store: Store) -> None:
    make_optuna_tables(store)
    with store.engine.begin() as connection:
        command.downgrade(alembic_config(connection), "base")
    assert not set(Base.metadata.tables) & set(inspect(store.engine).get_table_names())
    with store.engine.begin() as connection:
        command.upgrade(alembic_config(connection), "head")
    assert difference(store) == []


def test_a_migration_that_fails_leaves_no_half(store: Store) -> None:
    with store.engine.begin() as connection:
        command.downgrade(alembic_config(connection), "base")
        connection.exec_driver_sql("CREATE TABLE job (id INTEGER)")
    with pytest.raises(Exception, match="job"):
        with store.engine.begin() as connection:
            command.upgrade(alembic_config(connection), "head")
    assert "search" not in inspect(store.engine).get_table_names()


def test_the_list_of_revisions_is_that_of_the_scripts() -> None:
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert tuple(reversed([script.revision for script in scripts.walk_revisions()])) == migrations.REVISIONS
    assert scripts.get_current_head() == migrations.HEAD
