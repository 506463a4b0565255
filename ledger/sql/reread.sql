-- What has become of rows that a worker holds: only those come back that are still leased to the given token and epoch.
-- No lock and no fence: it can only make a holder let go or poll sooner.
SELECT w.operation_id, w.lane, w.kick
FROM (SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:lanes AS text[])) AS lane, unnest(CAST(:tokens AS uuid[])) AS token) AS v
JOIN counterfoil.wake AS w ON w.operation_id = v.id AND w.lane = v.lane
WHERE w.lease_token = v.token AND w.lease_epoch = :epoch
