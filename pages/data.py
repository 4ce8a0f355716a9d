"""`/data`: which signals this source has, under which names, and why others are missing."""

from obs.ui import coverage, screen

coverage.draw(screen.current())
