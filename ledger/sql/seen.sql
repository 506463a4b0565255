-- When a part of the fleet was last heard of. Written every 5 s at most: beat ticks twice a second, and each write is a dead row.
INSERT INTO counterfoil.pulse AS p (fleet, name, seen_at) VALUES (:fleet, :name, counterfoil.ledger_now())
ON CONFLICT (fleet, name) DO UPDATE SET seen_at = excluded.seen_at WHERE p.seen_at < excluded.seen_at - interval '5 s'
