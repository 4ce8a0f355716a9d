"""`/incidents`: what was kept, with its notes and its readings."""

from obs.ui import incidents, screen

incidents.draw(screen.current())
