"""Settings are facts: every form of configuration, in a file or printed in a log, becomes typed settings.

- `vocabulary` lists the settings that are known, `grammar` finds which of them a key names, `values` reads what is
  spelled as text, `settings` puts all of it together with where each value stands.
- `files` reads files and finds those beside a log; `printed` finds what a script printed at the head of its log.
- `facts` derives what follows from settings and metrics together.
"""

from mldebug_mcp.logs.settings.printed import settings_printed_in
from mldebug_mcp.logs.settings.settings import Setting, Settings
from mldebug_mcp.logs.settings.values import Scalar, Value

__all__ = ["Scalar", "Setting", "Settings", "Value", "settings_printed_in"]
