"""Settings are facts: every form of configuration, in a file or printed in a log, becomes typed settings.

`values` reads what is spelled as text, `forms` the text of a whole configuration, `settings` puts all of it together
with where each value stands. `files` reads files and finds those of a log, `printed` finds what a script printed at
the head of its log.
"""

from mldebug_mcp.logs.settings.printed import settings_printed_in
from mldebug_mcp.logs.settings.settings import Setting, Settings
from mldebug_mcp.logs.settings.values import Scalar, Value

__all__ = ["Scalar", "Setting", "Settings", "Value", "settings_printed_in"]
