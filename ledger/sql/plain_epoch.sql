-- The epoch without its lock: for people, for a process that wants to know whether it is old, and under the lock of a bump.
SELECT epoch FROM counterfoil.execution_epoch WHERE fleet = :fleet
