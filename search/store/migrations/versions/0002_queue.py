"""The queue, which nothing had used, with what a runner needs; and the runners."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("queue")
    op.create_table(
        "queue",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("search_id", sa.Integer(), nullable=True),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("plugins", sa.JSON(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("window", sa.String(length=40), nullable=True),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("started", sa.Double(), nullable=True),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.Double(), nullable=True),
        sa.Column("claim", sa.Integer(), nullable=False),
        sa.Column("owner_host", sa.Text(), nullable=True),
        sa.Column("owner_boot", sa.Text(), nullable=True),
        sa.Column("owner_pid", sa.Integer(), nullable=True),
        sa.Column("owner_started", sa.Double(), nullable=True),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.Column("beat_time", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["search_id"], ["search.id"], name="fk_queue_search_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_queue"),
    )
    op.create_index("ix_queue_search_id", "queue", ["search_id"], unique=False)
    op.create_index("ix_queue_state", "queue", ["state"], unique=False)
    op.create_table(
        "runner",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("owner_host", sa.Text(), nullable=False),
        sa.Column("owner_boot", sa.Text(), nullable=False),
        sa.Column("owner_pid", sa.Integer(), nullable=False),
        sa.Column("owner_started", sa.Double(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.Column("beat_time", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runner"),
    )


def downgrade() -> None:
    op.drop_table("runner")
    op.drop_index("ix_queue_state", table_name="queue")
    op.drop_index("ix_queue_search_id", table_name="queue")
    op.drop_table("queue")
    op.create_table(
        "queue",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("window", sa.String(length=40), nullable=True),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_queue"),
    )
