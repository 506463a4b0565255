"""Everything that is run, by name."""

from .families_close import CLOSE
from .families_statements import STATEMENTS
from .families_wide import WIDE
from .family import Family

FAMILIES: dict[str, Family] = {family.name: family for family in (*WIDE, *CLOSE, *STATEMENTS)}

EXHAUSTED = ("2026 blind", "lost unique")
"""Small families of which every run is played that differs from the plain one in one choice."""
