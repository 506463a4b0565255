-- Questions, each with the identity that its server gave it. The unique key refuses one that was asked before, whatever was decided.
INSERT INTO counterfoil.input_round (operation_id, number, leg, key, method, params, schema_digest, reply_to, opened_at)
SELECT v.id, v.number, v.leg, v.key, v.method, v.params, v.schema_digest, v.reply_to, counterfoil.ledger_now()
FROM (
    SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:numbers AS int[])) AS number, unnest(CAST(:legs AS int[])) AS leg,
        unnest(CAST(:keys AS text[])) AS key, unnest(CAST(:methods AS text[])) AS method, unnest(CAST(:params AS bytea[])) AS params,
        unnest(CAST(:schemas AS bytea[])) AS schema_digest, unnest(CAST(:reply_tos AS text[])) AS reply_to
) AS v
