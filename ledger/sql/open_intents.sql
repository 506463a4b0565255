-- The intents themselves, after epoch, operation and lease were locked and judged. The partial unique index allows one open intent
-- per operation and effect whatever the judge thought.
INSERT INTO counterfoil.intent (send_token, operation_id, effect, attempt, generation, epoch, send_by, answer_by, opened_at)
SELECT v.send_token, v.id, v.effect, v.attempt, v.generation, :epoch,
    (SELECT counterfoil.ledger_now()) + make_interval(secs => v.send_by_s), (SELECT counterfoil.ledger_now()) + make_interval(secs => v.answer_by_s),
    (SELECT counterfoil.ledger_now())
FROM unnest(CAST(:send_tokens AS uuid[]), CAST(:ids AS uuid[]), CAST(:effects AS text[]), CAST(:attempts AS int[]),
    CAST(:generations AS int[]), CAST(:send_by_s AS float8[]), CAST(:answer_by_s AS float8[]))
    AS v(send_token, id, effect, attempt, generation, send_by_s, answer_by_s)
