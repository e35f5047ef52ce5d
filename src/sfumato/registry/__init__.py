"""An entry for the public registry of deployments of differential privacy, made from a release.

The release fills in what it knows. The rest are answers of the holder, or marked as to be filled in.
"""

from sfumato.registry.entry import make_entry, write
from sfumato.registry.fields import FIELDS, TO_FILL_IN, Field, problems, unfilled
from sfumato.registry.yaml import as_yaml

__all__ = ["FIELDS", "TO_FILL_IN", "Field", "as_yaml", "make_entry", "problems", "unfilled", "write"]
