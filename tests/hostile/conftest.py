import sys
from pathlib import Path

# The record batches of the unit tests, byte by byte.
sys.path.append(str(Path(__file__).parent.parent / "unit" / "records"))
