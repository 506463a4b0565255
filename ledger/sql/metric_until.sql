-- Up to which moment everything has certainly committed: a statement of ours is ended after 5 s, an idle transaction after 2.
SELECT counterfoil.ledger_now() - make_interval(secs => :settled_s)
