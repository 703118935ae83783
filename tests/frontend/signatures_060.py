"""Run under jaxlib 0.6.0: the names of its builder ops, and of their parameters.

python tests/frontend/signatures_060.py > tests/frontend/ops_060.json
"""

import json
import re

from jaxlib import xla_client

ops = xla_client.ops
found = {}
for name in sorted(n for n in dir(ops) if n[0] != "_"):
    signature = (getattr(ops, name).__doc__ or "").partition("\n")[0]
    match = re.match(rf"{name}\((.*)\) -> ", signature)
    found[name] = re.findall(r"(?:^|, )(\w+): ", match[1]) if match else []
print(json.dumps(found, indent=0))
