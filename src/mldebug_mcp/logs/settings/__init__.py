"""Settings are facts: every form of configuration, in a file or printed in a log, becomes typed settings.

`settings` reads what is spelled as text, puts all of it together with where each value stands, and says what follows
from it. `printed` reads the text of a whole configuration and finds what a script printed at the head of its log.
`files` reads files and finds those of a log.
"""

from mldebug_mcp.logs.settings.printed import settings_printed_in
from mldebug_mcp.logs.settings.settings import Scalar, Setting, Settings, Value

__all__ = ["Scalar", "Setting", "Settings", "Value", "settings_printed_in"]
