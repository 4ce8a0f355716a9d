"""The colours of lines, for the pages."""

from obs.palette import COLORS as COLORS
from obs.palette import DASHES as DASHES
from obs.palette import HOT as HOT
from obs.palette import MUTE as MUTE
from obs.palette import dashes as dashes
from obs.palette import replica_colors as replica_colors
