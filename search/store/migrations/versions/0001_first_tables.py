"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
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
    op.create_table(
        "search",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("started", sa.Double(), nullable=True),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.Column("deadline", sa.Double(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("artifacts", sa.Text(), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=True),
        sa.Column("lease", sa.Integer(), nullable=False),
        sa.Column("owner_host", sa.Text(), nullable=True),
        sa.Column("owner_boot", sa.Text(), nullable=True),
        sa.Column("owner_pid", sa.Integer(), nullable=True),
        sa.Column("owner_started", sa.Double(), nullable=True),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.Column("beat_time", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_search"),
        sa.UniqueConstraint("name", name="uq_search_name"),
    )
    op.create_table(
        "candidate",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("search_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=True),
        sa.Column("family", sa.String(length=60), nullable=False),
        sa.Column("point", sa.JSON(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("analysis", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("rung", sa.Integer(), nullable=True),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("measured", sa.JSON(), nullable=False),
        sa.Column("intervals", sa.JSON(), nullable=False),
        sa.Column("by_rung", sa.JSON(), nullable=False),
        sa.Column("trial", sa.Integer(), nullable=True),
        sa.Column("told", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["search_id"], ["search.id"], name="fk_candidate_search_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_candidate"),
        sa.UniqueConstraint("search_id", "number", name="uq_candidate_search_id_number"),
        sa.UniqueConstraint("search_id", "role", "digest", name="uq_candidate_search_id_role_digest"),
    )
    op.create_index("ix_candidate_search_state", "candidate", ["search_id", "state"], unique=False)
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("search_id", sa.Integer(), nullable=True),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("candidate", sa.Integer(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["search_id"], ["search.id"], name="fk_event_search_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
    )
    op.create_index("ix_event_search_id", "event", ["search_id"], unique=False)
    op.create_table(
        "request",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("search_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("done", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["search_id"], ["search.id"], name="fk_request_search_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_request"),
    )
    op.create_index("ix_request_search_id", "request", ["search_id"], unique=False)
    op.create_table(
        "job",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("search_id", sa.Integer(), nullable=False),
        sa.Column("candidate_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("rung", sa.Integer(), nullable=True),
        sa.Column("first_epoch", sa.Integer(), nullable=False),
        sa.Column("last_epoch", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["candidate_id"], ["candidate.id"], name="fk_job_candidate_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["search_id"], ["search.id"], name="fk_job_search_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_job"),
    )
    op.create_index("ix_job_candidate_id", "job", ["candidate_id"], unique=False)
    op.create_index("ix_job_search_state", "job", ["search_id", "state"], unique=False)
    op.create_table(
        "attempt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("lease", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("host", sa.Text(), nullable=True),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("device_id", sa.Text(), nullable=True),
        sa.Column("started", sa.Double(), nullable=False),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_attempt_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_attempt"),
        sa.UniqueConstraint("job_id", "number", name="uq_attempt_job_id_number"),
    )
    op.create_index("ix_attempt_state", "attempt", ["state"], unique=False)
    op.create_table(
        "artifact",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("search_id", sa.Integer(), nullable=False),
        sa.Column("candidate_id", sa.Integer(), nullable=True),
        sa.Column("attempt_id", sa.Integer(), nullable=True),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("num_bytes", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempt.id"], name="fk_artifact_attempt_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["candidate_id"], ["candidate.id"], name="fk_artifact_candidate_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["search_id"], ["search.id"], name="fk_artifact_search_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_artifact"),
    )
    op.create_index("ix_artifact_candidate_id", "artifact", ["candidate_id"], unique=False)
    op.create_index("ix_artifact_search_id", "artifact", ["search_id"], unique=False)
    op.create_table(
        "epoch",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("candidate_id", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("train_loss", sa.Double(), nullable=False),
        sa.Column("val_loss", sa.Double(), nullable=False),
        sa.Column("accuracy", sa.Double(), nullable=False),
        sa.Column("accuracy_low", sa.Double(), nullable=False),
        sa.Column("accuracy_high", sa.Double(), nullable=False),
        sa.Column("learning_rate", sa.Double(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("pause_seconds", sa.Double(), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempt.id"], name="fk_epoch_attempt_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["candidate_id"], ["candidate.id"], name="fk_epoch_candidate_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_epoch"),
        sa.UniqueConstraint("attempt_id", "epoch", name="uq_epoch_attempt_id_epoch"),
    )
    op.create_index("ix_epoch_candidate", "epoch", ["candidate_id", "epoch"], unique=False)
    op.create_table(
        "evaluation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("candidate_id", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("split", sa.String(length=20), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("figures", sa.JSON(), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempt.id"], name="fk_evaluation_attempt_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["candidate_id"], ["candidate.id"], name="fk_evaluation_candidate_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_evaluation"),
    )
    op.create_index("ix_evaluation_candidate_id", "evaluation", ["candidate_id"], unique=False)
    op.create_table(
        "measurement",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("search_id", sa.Integer(), nullable=True),
        sa.Column("candidate_id", sa.Integer(), nullable=True),
        sa.Column("attempt_id", sa.Integer(), nullable=True),
        sa.Column("source_id", sa.Integer(), nullable=True),
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("protocol", sa.String(length=40), nullable=False),
        sa.Column("device_id", sa.String(length=200), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=False),
        sa.Column("runtime", sa.String(length=40), nullable=False),
        sa.Column("precision", sa.String(length=20), nullable=False),
        sa.Column("batch_size", sa.Integer(), nullable=False),
        sa.Column("figures", sa.JSON(), nullable=False),
        sa.Column("samples", sa.LargeBinary(), nullable=True),
        sa.Column("time", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempt.id"], name="fk_measurement_attempt_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["candidate_id"], ["candidate.id"], name="fk_measurement_candidate_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["search_id"], ["search.id"], name="fk_measurement_search_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["measurement.id"], name="fk_measurement_source_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_measurement"),
    )
    op.create_index("ix_measurement_candidate_id", "measurement", ["candidate_id"], unique=False)
    op.create_index(
        "ix_measurement_key",
        "measurement",
        ["digest", "device_id", "threads", "runtime", "precision", "batch_size", "protocol"],
        unique=False,
    )
    op.create_table(
        "writer",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_writer"),
    )


def downgrade() -> None:
    op.drop_table("writer")
    op.drop_index("ix_measurement_key", table_name="measurement")
    op.drop_index("ix_measurement_candidate_id", table_name="measurement")
    op.drop_table("measurement")
    op.drop_index("ix_evaluation_candidate_id", table_name="evaluation")
    op.drop_table("evaluation")
    op.drop_index("ix_epoch_candidate", table_name="epoch")
    op.drop_table("epoch")
    op.drop_index("ix_artifact_search_id", table_name="artifact")
    op.drop_index("ix_artifact_candidate_id", table_name="artifact")
    op.drop_table("artifact")
    op.drop_index("ix_attempt_state", table_name="attempt")
    op.drop_table("attempt")
    op.drop_index("ix_job_search_state", table_name="job")
    op.drop_index("ix_job_candidate_id", table_name="job")
    op.drop_table("job")
    op.drop_index("ix_request_search_id", table_name="request")
    op.drop_table("request")
    op.drop_index("ix_event_search_id", table_name="event")
    op.drop_table("event")
    op.drop_index("ix_candidate_search_state", table_name="candidate")
    op.drop_table("candidate")
    op.drop_table("search")
    op.drop_table("queue")
