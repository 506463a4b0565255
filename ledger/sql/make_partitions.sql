-- Prepare the months to come. Does nothing where they are; by any number at once.
SELECT counterfoil.make_partitions(CAST(:ahead AS int))
