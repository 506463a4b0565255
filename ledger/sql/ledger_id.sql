-- The ledger's own name: part of every submission key.
SELECT ledger_id FROM counterfoil.ledger_identity
