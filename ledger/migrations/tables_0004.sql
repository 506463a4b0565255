-- Which release a fleet is, and by what the epoch was last raised: a hook that runs again finds its own mark.
ALTER TABLE counterfoil.execution_epoch
    ADD COLUMN generation BIGINT,
    ADD COLUMN bump_key TEXT;

-- Switched by configuration: what it switched off it may switch on again, a person's switch it leaves alone.
ALTER TABLE counterfoil.control ADD COLUMN by_values BOOLEAN DEFAULT false NOT NULL;
