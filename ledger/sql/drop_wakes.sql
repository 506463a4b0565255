-- Rows that the new state does not name go, even if leased: their holder finds them gone and lets go.
DELETE FROM counterfoil.wake AS w
WHERE w.operation_id = ANY(CAST(:operations AS uuid[]))
  AND NOT EXISTS (
    SELECT 1 FROM unnest(CAST(:ids AS uuid[]), CAST(:lanes AS text[])) AS v(id, lane)
    WHERE v.id = w.operation_id AND v.lane = w.lane
  )
