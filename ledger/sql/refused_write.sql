-- What an older epoch tried. Evidence of its own kind: fenced by nothing.
INSERT INTO counterfoil.refused_write (id, operation_id, fleet, code, epoch, what)
VALUES (:id, :operation_id, :fleet, 'E_STALE_EPOCH', :epoch, :what)
