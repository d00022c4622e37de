-- A program that does not know the newest revision learns here whether it may work beside it
-- (docs/operations/upgrade.md).

CREATE TABLE plexsphere.schema_compatibility (
    only_row       boolean NOT NULL DEFAULT true,
    oldest_program text    NOT NULL,
    CONSTRAINT schema_compatibility_pkey PRIMARY KEY (only_row),
    CONSTRAINT schema_compatibility_only_row_check CHECK (only_row),
    CONSTRAINT schema_compatibility_oldest_program_check CHECK (oldest_program ~ '^[0-9]{4}$')
);
COMMENT ON COLUMN plexsphere.schema_compatibility.oldest_program IS
    'Newest revision that the oldest program knows which may work on this schema; a revision that '
    'takes something away raises it';
INSERT INTO plexsphere.schema_compatibility (oldest_program) VALUES ('0028');
