-- What a producer may name: the targets that workers have announced.
SELECT target FROM counterfoil.target_state WHERE fleet = :fleet
