-- Does something that lives need this partition? An operation that is not over, an audit, an open case, evidence that nobody has read.
-- Costs what lives: each is looked up in the partition by its index.
SELECT EXISTS (
    SELECT FROM counterfoil.call_node AS n JOIN __partition__ AS p ON p.operation_id = n.operation_id
    WHERE n.outcome IS NULL AND n.operation_id IS NOT NULL
) OR EXISTS (
    SELECT FROM counterfoil.operation AS o JOIN __partition__ AS p ON p.operation_id = o.id
    WHERE o.audit_ends_at > counterfoil.ledger_now()
) OR EXISTS (
    SELECT FROM counterfoil.reconciliation_case AS c JOIN __partition__ AS p ON p.operation_id = c.operation_id
    WHERE c.closed_at IS NULL
) OR EXISTS (SELECT FROM __partition__ AS p WHERE __unread__)
