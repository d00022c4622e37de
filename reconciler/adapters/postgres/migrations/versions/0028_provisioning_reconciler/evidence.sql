-- What was refused to the holder of a known token, and each key that was given anew, where no
-- stranger's denials push it out; those are kept in fair shares of address blocks
-- (docs/decisions/0023-evidence-of-enrolment.md).

CREATE FUNCTION plexsphere.address_block(address text) RETURNS cidr
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    parsed inet;
BEGIN
    parsed := split_part(address, '%', 1)::inet;
    IF parsed << '::ffff:0:0/96' THEN
        parsed := '0.0.0.0'::inet + (parsed - '::ffff:0:0'::inet);
    END IF;
    RETURN network(set_masklen(parsed, CASE family(parsed) WHEN 4 THEN 24 ELSE 48 END));
EXCEPTION WHEN invalid_text_representation THEN
    RETURN '0.0.0.0/32';
END $$;
COMMENT ON FUNCTION plexsphere.address_block(text) IS
    'Network that an address counts for, IPv4 /24 or IPv6 /48; 0.0.0.0/32 for what is none';

CREATE TABLE plexsphere.enrolment_audit (
    sequence           bigint      GENERATED ALWAYS AS IDENTITY,
    at                 timestamptz NOT NULL DEFAULT now(),
    code               text        NOT NULL,
    status             smallint    NOT NULL,
    bootstrap_token_id uuid,
    project_id         uuid,
    remote_address     text        NOT NULL,
    node_id            uuid,
    detail             text,
    block              cidr        GENERATED ALWAYS AS (
        plexsphere.address_block(remote_address)
    ) STORED,
    CONSTRAINT enrolment_audit_pkey PRIMARY KEY (sequence),
    CONSTRAINT enrolment_audit_detail_check CHECK (
        detail IN ('other_key', 'other_nonce', 'reported', 'left', 'too_often')
    )
);
COMMENT ON TABLE plexsphere.enrolment_audit IS
    'Denials of what carried no known token, a fair share of each address block; ids only, never a '
    'value that was asked with';
CREATE INDEX enrolment_audit_at_idx ON plexsphere.enrolment_audit (at);

CREATE TABLE plexsphere.enrolment_evidence (
    sequence                bigint      GENERATED ALWAYS AS IDENTITY,
    at                      timestamptz NOT NULL DEFAULT now(),
    code                    text        NOT NULL,
    status                  smallint    NOT NULL,
    bootstrap_token_id      uuid        NOT NULL,
    provisioned_resource_id uuid,
    project_id              uuid,
    node_id                 uuid,
    detail                  text,
    remote_address          text        NOT NULL,
    block                   cidr        NOT NULL,
    times                   bigint      NOT NULL DEFAULT 1,
    last_at                 timestamptz NOT NULL DEFAULT now(),
    last_address            text        NOT NULL,
    CONSTRAINT enrolment_evidence_pkey PRIMARY KEY (sequence),
    CONSTRAINT enrolment_evidence_detail_check CHECK (
        detail IN ('other_key', 'other_nonce', 'reported', 'left', 'too_often')
    ),
    CONSTRAINT enrolment_evidence_times_check CHECK (times > 0)
);
COMMENT ON TABLE plexsphere.enrolment_evidence IS
    'Denials of known tokens, and nodes given another key (readmitted); append-only but for the count '
    'and the last time; refers to no table, so that it outlives what it speaks of';
COMMENT ON COLUMN plexsphere.enrolment_evidence.project_id IS
    'Project that the first request named';
COMMENT ON COLUMN plexsphere.enrolment_evidence.block IS
    'Network of the address; 0.0.0.0/0 for all further ones once a token has its share of entries';
COMMENT ON COLUMN plexsphere.enrolment_evidence.times IS
    'How often it happened, from remote_address at first and last_address at last';
CREATE UNIQUE INDEX enrolment_evidence_denial_unique
    ON plexsphere.enrolment_evidence (bootstrap_token_id, code, detail, block) NULLS NOT DISTINCT
    WHERE code <> 'readmitted';
CREATE INDEX enrolment_evidence_at_idx ON plexsphere.enrolment_evidence (at);

CREATE FUNCTION plexsphere.refuse_enrolment_evidence_change() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    counted text[] := '{times,last_at,last_address}';
BEGIN
    IF TG_OP = 'UPDATE' AND TG_LEVEL = 'ROW' THEN
        IF NEW.times > OLD.times AND NEW.last_at >= OLD.last_at
            AND to_jsonb(NEW) - counted = to_jsonb(OLD) - counted
        THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'plexsphere.enrolment_evidence is append-only' USING ERRCODE = '42501';
END
$$;
CREATE TRIGGER enrolment_evidence_append_only
    BEFORE DELETE OR TRUNCATE ON plexsphere.enrolment_evidence
    FOR EACH STATEMENT EXECUTE FUNCTION plexsphere.refuse_enrolment_evidence_change();
CREATE TRIGGER enrolment_evidence_counted
    BEFORE UPDATE ON plexsphere.enrolment_evidence
    FOR EACH ROW EXECUTE FUNCTION plexsphere.refuse_enrolment_evidence_change();
