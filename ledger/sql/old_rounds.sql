-- Questions and replies of operations that ended long ago, are not audited any more and wait for nobody's word.
SELECT x.operation_id, x.number FROM counterfoil.input_round AS x
JOIN counterfoil.operation AS o ON o.id = x.operation_id
JOIN counterfoil.terminal_receipt AS r ON r.namespace = o.namespace AND r.call_node_id = o.call_node_id
WHERE o.id < counterfoil.id_floor(counterfoil.ledger_now() - make_interval(days => :days)) AND r.accepted_at < counterfoil.ledger_now() - make_interval(days => :days)
  AND (o.audit_ends_at IS NULL OR o.audit_ends_at < counterfoil.ledger_now())
  AND NOT EXISTS (SELECT FROM counterfoil.reconciliation_case AS c WHERE c.operation_id = o.id AND c.closed_at IS NULL)
  AND NOT EXISTS (SELECT FROM counterfoil.ready_outbox AS w WHERE w.receipt_id = r.id AND w.deliveries > 0 AND w.acked_at IS NULL)
LIMIT :batch
