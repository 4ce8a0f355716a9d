"""`/retries`: are we doing work twice, or for nobody?"""

from obs.ui import retries, screen

retries.draw(screen.current())
