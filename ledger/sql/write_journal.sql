-- One line a step, note, case or refusal, numbered under the operation's lock.
INSERT INTO counterfoil.journal (operation_id, seq, at, epoch, actor, event, source, target, lane, code, why)
SELECT v.id, v.seq, (SELECT counterfoil.ledger_now()), :epoch, :actor, v.event, v.source, v.target, v.lane, v.code, v.why
FROM unnest(CAST(:ids AS uuid[]), CAST(:seqs AS int[]), CAST(:events AS text[]), CAST(:sources AS text[]), CAST(:targets AS text[]),
    CAST(:lanes AS text[]), CAST(:codes AS text[]), CAST(:whys AS text[])) AS v(id, seq, event, source, target, lane, code, why)
