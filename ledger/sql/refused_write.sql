-- What an older epoch tried. Evidence of its own kind: fenced by nothing.
INSERT INTO counterfoil.refused_write (id, operation_id, fleet, code, epoch, what)
SELECT v.id, v.operation_id, :fleet, 'E_STALE_EPOCH', :epoch, :what
FROM (SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:operations AS uuid[])) AS operation_id) AS v
