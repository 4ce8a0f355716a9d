"""`/compare`: what changed between two windows, and did the change that was tested help?"""

from obs.ui import compare, screen

compare.draw(screen.current())
