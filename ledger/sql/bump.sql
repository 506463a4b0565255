-- Epochs only grow. The table lock stands in front (taken by the caller): a plain UPDATE against FOR SHARE readers starved for 8 s.
UPDATE counterfoil.execution_epoch
SET epoch = :epoch, reason = :reason, bumped_at = counterfoil.ledger_now(), bump_key = :once,
    generation = coalesce(CAST(:generation AS bigint), generation)
WHERE fleet = :fleet AND epoch < :epoch
