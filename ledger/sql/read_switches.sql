-- What people switched off, read under the fence: a switch that was committed before the bump it came with is seen here.
SELECT coalesce((SELECT c.create_on FROM counterfoil.control AS c WHERE c.fleet = :fleet), true) AS create_on,
    ARRAY(SELECT m.protocol FROM counterfoil.adapter_mode AS m WHERE m.fleet = :fleet AND m.mode <> 'open') AS shut
