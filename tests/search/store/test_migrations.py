"""Models and migrations describe the same tables, beside Optuna's too."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect
from sqlalchemy.orm import Session

from search import lease
from search.errors import UserError
from search.store import migrations
from search.store.location import locate
from search.store.migrations.upgrade import alembic_config, settings
from search.store.models import Base
from search.store.session import Store, open_store
from search.store.write import searches


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


def make_older(store: Store, owner: lease.Owner | None) -> None:
    """Tables of the version before, with a search that `owner` drives."""

    def add(session: Session) -> None:
        number = searches.create(session, "digits", {}, {}, "x", None)
        if owner is not None:
            searches.take(session, number, owner, None)

    store.write(add)
    with store.engine.begin() as connection:
        command.downgrade(alembic_config(connection), migrations.REVISIONS[-2])
    store.close()


def test_a_search_that_an_older_version_drives_is_not_pulled_from_under_it(
    store: Store, database: str
) -> None:
    make_older(store, lease.this_process())
    with pytest.raises(
        UserError, match=r"which drives search 'digits' now \(process \d+ on .*: wait until"
    ) as caught:
        open_store(database, create=False)
    assert str(caught.value).startswith(store.location.label)
    with store.read() as reader:
        assert reader.rows("SELECT version_num FROM paretovit_version") == [
            {"version_num": migrations.REVISIONS[-2]}
        ]


def test_a_database_whose_driver_has_gone_is_brought_forward(store: Store, database: str) -> None:
    here = lease.this_process()
    make_older(store, lease.Owner(here.host, here.boot, here.pid, here.started - 1000))
    opened = open_store(database, create=False)
    with opened.read() as reader:
        assert reader.rows("SELECT version_num FROM paretovit_version") == [{"version_num": migrations.HEAD}]
    opened.close()
