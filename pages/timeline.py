"""`/timeline`: what happened, and what changed?"""

from obs.ui import screen, timeline

timeline.draw(screen.current())
