"""`/`: which row of the symptom table applies, since when, where, how sure."""

from obs.ui import diagnosis, screen

diagnosis.draw(screen.current())
