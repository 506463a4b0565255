-- What the old path told against what the shadows made. Values are compared by the digest of their RFC 8785 text: `result` was stored as
-- that text, `result_value_digest` was taken over it. The sums count all; the lines are cut, those that differ first.
WITH compared AS (
    SELECT n.call_node_id, o.target, o.tool, o.id AS operation_id, n.first_seen_at, r.outcome AS told,
        CASE WHEN o.settle_as IS NULL THEN o.outcome END AS made,
        CASE
            WHEN r.outcome IS NULL THEN 'the old path has told nothing'
            WHEN o.outcome IS NULL OR o.settle_as IS NOT NULL THEN 'the shadow is ' || o.state
        END AS lacks,
        CASE
            WHEN r.outcome <> o.outcome THEN 'outcome' || coalesce(' (' || o.error_code || ')', '')
            WHEN r.result IS NOT NULL AND o.result_value_digest IS NULL THEN 'result: the shadow has none that can be compared'
            WHEN sha256(r.result) <> o.result_value_digest THEN 'result'
        END AS unlike
    FROM counterfoil.call_node AS n
    JOIN counterfoil.operation AS o ON o.namespace = n.namespace || '~shadow' AND o.call_node_id = n.call_node_id
    LEFT JOIN counterfoil.shadow_report AS r ON r.namespace = n.namespace AND r.call_node_id = n.call_node_id
    WHERE n.namespace = :namespace AND n.mode = 'shadow'
      AND o.target = coalesce(CAST(:target AS text), o.target) AND o.tool = coalesce(CAST(:tool AS text), o.tool)
), judged AS (
    SELECT c.*, CASE WHEN c.lacks IS NOT NULL THEN 'missing' WHEN c.unlike IS NOT NULL THEN 'differs' ELSE 'same' END AS verdict
    FROM compared AS c
)
SELECT j.call_node_id, j.target, j.tool, j.operation_id, j.verdict, j.told, j.made, coalesce(j.lacks, j.unlike) AS why,
    count(*) FILTER (WHERE j.verdict = 'same') OVER () AS all_same,
    count(*) FILTER (WHERE j.verdict = 'differs') OVER () AS all_differs,
    count(*) FILTER (WHERE j.verdict = 'missing') OVER () AS all_missing
FROM judged AS j
ORDER BY j.verdict = 'differs' DESC, j.verdict = 'missing' DESC, j.first_seen_at DESC, j.call_node_id
LIMIT :limit
