-- Questions, each with the identity that its server gave it. The unique key refuses one that was asked before, whatever was decided.
INSERT INTO counterfoil.input_round (operation_id, number, leg, key, method, params, schema_digest, reply_to, opened_at)
SELECT v.id, v.number, v.leg, v.key, v.method, v.params, v.schema_digest, v.reply_to, counterfoil.ledger_now()
FROM unnest(CAST(:ids AS uuid[]), CAST(:numbers AS int[]), CAST(:legs AS int[]), CAST(:keys AS text[]), CAST(:methods AS text[]),
    CAST(:params AS bytea[]), CAST(:schemas AS bytea[]), CAST(:reply_tos AS text[]))
    AS v(id, number, leg, key, method, params, schema_digest, reply_to)
